// Where libzmq listens behind a front: only the process itself may connect.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "base/file_descriptor.h"
#include "comm/control/zmq_handles.h"
#include "comm/front/zmtp_front.h"

namespace troupe::comm {
namespace {

/// Connects to an abstract Unix socket; the first byte that comes, 0 when the server closes the connection first, -1
/// when nothing comes within 20 s. Only system calls: a child after fork() runs it too.
int first_byte_of(const std::string& name) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return -1;
  unsigned char byte = 0;
  const ssize_t got = ::recv(socket.get(), &byte, 1, 0);
  return got <= 0 ? static_cast<int>(got) : byte;
}

TEST(BindBackendTest, AnotherProcessIsNotServed) {
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket router(zmq_socket(context.get(), ZMQ_ROUTER));
  const std::string name = bind_backend(router.get()).value();
  EXPECT_EQ(first_byte_of(name), 0xff) << "a greeting's";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(first_byte_of(name) == 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace troupe::comm

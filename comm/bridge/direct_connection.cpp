#include "comm/bridge/direct_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace troupe::comm {

namespace {

using base::FileDescriptor;

constexpr std::size_t kSizeBytes = 4, kChunk = std::size_t{16} << 10;
constexpr int kLongestWaitMs = 1000;  // then the loop looks again: poll(2) takes an int

}  // namespace

bool DirectConnection::send(std::span<const std::byte> message) {
  std::vector<std::byte> bytes(kSizeBytes + message.size());
  const auto size = static_cast<std::uint32_t>(message.size());
  std::memcpy(bytes.data(), &size, kSizeBytes);
  std::copy(message.begin(), message.end(), bytes.begin() + kSizeBytes);
  ssize_t sent = 0;
  while ((sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 &&
         errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(bytes.size());
}

Result<std::optional<std::vector<std::byte>>> DirectConnection::receive(Clock::time_point until,
                                                                        std::size_t max_bytes) {
  while (true) {
    TROUPE_ASSIGN(auto message, take_whole(max_bytes));
    if (message) return message;
    const std::size_t had = read_.size();
    read_.resize(had + kChunk);
    const ssize_t got = ::recv(socket_.get(), read_.data() + had, kChunk, MSG_DONTWAIT);
    const int why = errno;
    read_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0 || (got < 0 && why == EINTR)) continue;
    if (got == 0 || (why != EAGAIN && why != EWOULDBLOCK)) return Error{Errc::aborted, "the connection has ended"};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return message;
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, static_cast<int>(std::min<std::int64_t>(left, kLongestWaitMs)));
  }
}

Result<std::optional<std::vector<std::byte>>> DirectConnection::take_whole(std::size_t max_bytes) {
  std::optional<std::vector<std::byte>> none;
  if (read_.size() < kSizeBytes) return none;
  std::uint32_t size = 0;
  std::memcpy(&size, read_.data(), kSizeBytes);
  if (size > max_bytes)
    return Error{Errc::data_loss, fmt::format("it sends a message of {} bytes; at most {} are taken", size, max_bytes)};
  const std::size_t end = kSizeBytes + size;
  if (read_.size() < end) return none;
  const auto begin = read_.begin();
  std::optional message{std::vector<std::byte>(begin + kSizeBytes, begin + static_cast<std::ptrdiff_t>(end))};
  read_.erase(begin, begin + static_cast<std::ptrdiff_t>(end));
  return message;
}

void DirectConnection::shut_down() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

Result<DirectListener> DirectListener::open() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address;
  // an address of its family alone: the kernel chooses the rest
  if (!socket.is_open() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family) != 0 ||
      ::listen(socket.get(), 16) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Error{Errc::resource_exhausted, fmt::format("no socket can be made: {}", std::strerror(errno))};
  }
  const std::size_t characters = size - offsetof(sockaddr_un, sun_path) - 1;
  return DirectListener(std::move(socket), "@" + std::string(address.sun_path + 1, characters));
}

Result<FileDescriptor> DirectListener::accept(std::int64_t pid) {
  while (true) {
    FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open() && errno == EINTR) continue;
    if (!socket.is_open())
      return Error{Errc::failed_precondition,
                   fmt::format("process {} has not connected: {}", pid, std::strerror(errno))};
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid) return socket;
  }
}

}  // namespace troupe::comm

// zmq channels whose connection breaks with an item under way.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/event_fd.h"
#include "base/file_descriptor.h"
#include "tests/comm/channel/channel_fixture.h"

namespace troupe::comm {
namespace {

using namespace testing_support;

/// Passes bytes between one client at a time and a server on loopback, and cuts the connection when it is told to.
class Cable {
 public:
  explicit Cable(std::uint16_t server) : server_(server), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), raw, size) != 0 || ::listen(listener_.get(), 8) != 0 ||
        ::getsockname(listener_.get(), raw, &size) != 0) {
      throw std::runtime_error("no port for the cable");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Cable() {
    is_over_ = true;
    wake_.raise();
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  /// The connection breaks after so many more bytes from the client, once.
  void cut_after(std::int64_t bytes) { left_ = bytes; }
  int cuts() const { return cuts_; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  bool wait(std::vector<pollfd>& fds) {
    fds.push_back({wake_.get(), POLLIN, 0});
    return ::poll(fds.data(), fds.size(), -1) > 0 && !is_over_;
  }
  void run() {
    while (!is_over_) {
      std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};
      if (!wait(fds)) return;
      const FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = loopback(server_);
      if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
      while (pass(client.get(), server.get())) continue;
    }
  }
  /// One turn; false: the connection is over.
  bool pass(int client, int server) {
    std::vector<pollfd> fds{{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (!wait(fds)) return false;
    char buffer[4096];
    for (int i = 0; i < 2; ++i) {
      if (fds[static_cast<std::size_t>(i)].revents == 0) continue;
      const ssize_t got = ::read(i == 0 ? client : server, buffer, sizeof buffer);
      if (got <= 0) return false;
      if (i == 0 && left_ >= 0 && left_.fetch_sub(got) <= got) {
        left_ = -1;
        ++cuts_;
        return false;
      }
      for (ssize_t done = 0; done < got;) {
        const ssize_t put =
            ::send(i == 0 ? server : client, buffer + done, static_cast<std::size_t>(got - done), MSG_NOSIGNAL);
        if (put <= 0) return false;
        done += put;
      }
    }
    return true;
  }

  const std::uint16_t server_;
  const FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::int64_t> left_{-1};
  std::atomic<int> cuts_{0};
  std::atomic<bool> is_over_{false};
  EventFd wake_;
  std::thread thread_;
};

TEST(ChannelCutTest, ItemsThatAConnectionTookAlongAreSentAgain) {
  constexpr std::size_t kBytes = 1 << 20;
  constexpr std::uint32_t kItems = 6;
  ChannelRig rig(true);
  Inbox inbox;
  auto consumer = rig.open(Transport::zmq, inbox, kItems, kBytes);
  std::string address = consumer->address();  // zmq:tcp://127.0.0.1:PORT;...
  const auto begin = address.find("127.0.0.1:") + 10, end = address.find(';');
  Cable cable(static_cast<std::uint16_t>(std::stoi(address.substr(begin, end - begin))));
  address.replace(begin, end - begin, std::to_string(cable.port()));

  auto producer = rig.try_dial(address, "decoder/0#0").value();
  ASSERT_TRUE(inbox.wait_for_producer("decoder/0#0"));
  std::thread work([&] {
    for (std::uint32_t i = 0; i < kItems; ++i) {
      const auto credit = producer->next_credit(kPatience);
      if (!credit) return;
      std::vector<std::byte> bytes(kBytes, static_cast<std::byte>(credit->tag));
      if (!producer->send(fill(*producer, *credit, bytes))) return;
    }
    // what a producer with nothing to do is in
    EXPECT_EQ(producer->next_credit(kPatience).error().code(), Errc::cancelled);
  });
  cable.cut_after(kBytes + kBytes / 2);
  for (std::uint32_t i = 0; i < kItems; ++i) ASSERT_TRUE(consumer->grant("decoder/0#0", {.tag = 10 + i, .fence = 1}));
  std::vector<std::uint64_t> tags;
  for (std::uint32_t i = 0; i < kItems; ++i) {
    const auto arrival = inbox.next();
    if (!arrival) break;
    EXPECT_EQ(arrival->item.error, "");
    EXPECT_EQ(arrival->item.bytes, kBytes);
    EXPECT_EQ(consumer->slot(arrival->item.credit.slot)[kBytes - 1], static_cast<std::byte>(arrival->item.credit.tag));
    tags.push_back(arrival->item.credit.tag);
  }
  producer->stop();
  work.join();
  EXPECT_EQ(cable.cuts(), 1);
  std::sort(tags.begin(), tags.end());
  EXPECT_EQ(tags, (std::vector<std::uint64_t>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(consumer->stats().items, kItems);
}

}  // namespace
}  // namespace troupe::comm

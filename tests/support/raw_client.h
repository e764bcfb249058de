#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// Bytes on a TCP connection to a port of this machine, as no library would send them. A call that waits gives up after
/// kPatience.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, option, &patience, sizeof patience), 0);
    // sent at once, so that the server has it before another client connects
    const int on = 1;
    EXPECT_EQ(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  /// All of it; false: the server has ended the connection, or does not read.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Sends as much as the connection takes at once; the bytes taken, or -1 when it is broken.
  ssize_t send_some(std::string_view text) const {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  /// Exactly so many bytes.
  std::string receive(std::size_t bytes) const {
    std::string text(bytes, '\0');
    EXPECT_EQ(::recv(socket_.get(), text.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return text;
  }
  /// What the server sends until `until` stands in it; all of it without one. "<end>" behind it: the server has ended
  /// the connection.
  std::string read(std::string_view until = {}) const {
    std::string all;
    char buffer[4096];
    while (until.empty() || all.find(until) == std::string::npos) {
      const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (size < 0 && errno != ECONNRESET) return all;
      if (size <= 0) return all + "<end>";
      all.append(buffer, static_cast<std::size_t>(size));
    }
    return all;
  }
  /// Whether the server ends the connection in this time; what it sends meanwhile is dropped.
  bool ends_within(std::chrono::milliseconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    char buffer[4096];
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd item{socket_.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&item, 1, static_cast<int>(left.count())) <= 0) return false;
      if (::recv(socket_.get(), buffer, sizeof buffer, 0) <= 0) return true;
    }
  }
  /// Whether the server ends the connection; what it sends before is dropped.
  bool is_ended_by_server() const { return read().ends_with("<end>"); }

 private:
  static constexpr std::chrono::seconds kPatience{20};
  const FileDescriptor socket_;
};

}  // namespace troupe::testing

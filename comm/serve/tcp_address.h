#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/namespaces.h"

namespace troupe::comm {

/// A TCP address as bind(2) and getsockname(2) take it.
struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  std::uint16_t port() const;

  /// `host`: an IPv4 or IPv6 address, "localhost", or "*" for every IPv4 address. Nothing for another text.
  static std::optional<TcpAddress> parse(std::string host, std::uint16_t port);
};

}  // namespace troupe::comm

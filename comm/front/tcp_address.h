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
  /// "10.0.0.1", "[::1]"; empty for another family.
  std::string host() const;

  /// `host`: an IPv4 or IPv6 address (also in brackets), "localhost", "*" for every IPv4 address, or the name of an
  /// interface, for its first IPv4 address. Nothing for another text.
  static std::optional<TcpAddress> parse(std::string host, std::uint16_t port);
};

}  // namespace troupe::comm

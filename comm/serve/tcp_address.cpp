#include "comm/serve/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace troupe::comm {

std::optional<TcpAddress> TcpAddress::parse(std::string host, std::uint16_t port) {
  if (host == "localhost") host = "127.0.0.1";
  if (host == "*") host = "0.0.0.0";
  TcpAddress out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&out.bytes, &v4, out.size = sizeof v4);
    return out;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return std::nullopt;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&out.bytes, &v6, out.size = sizeof v6);
  return out;
}

std::uint16_t TcpAddress::port() const {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &bytes, sizeof v4);
  std::memcpy(&v6, &bytes, sizeof v6);
  return ntohs(bytes.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

}  // namespace troupe::comm

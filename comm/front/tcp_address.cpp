#include "comm/front/tcp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

namespace troupe::comm {

namespace {

/// The first IPv4 address of an interface.
std::optional<in_addr> address_of(const std::string& interface) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || interface != one->ifa_name) continue;
    sockaddr_in v4{};
    std::memcpy(&v4, one->ifa_addr, sizeof v4);
    return v4.sin_addr;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TcpAddress> TcpAddress::parse(std::string host, std::uint16_t port) {
  if (host == "localhost") host = "127.0.0.1";
  if (host == "*") host = "0.0.0.0";
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  TcpAddress out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  auto of_interface = address_of(host);
  if (of_interface) v4.sin_addr = *of_interface;
  if (of_interface || ::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
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

std::string TcpAddress::host() const {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &bytes, sizeof v4);
  std::memcpy(&v6, &bytes, sizeof v6);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.ss_family == AF_INET && ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) != nullptr)
    return text.data();
  if (bytes.ss_family == AF_INET6 && ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) != nullptr)
    return std::string("[") + text.data() + "]";
  return {};
}

}  // namespace troupe::comm

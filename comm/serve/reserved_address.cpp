#include "comm/serve/reserved_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::comm {

namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

bool parse_address(std::string host, std::uint16_t port, Address& out) {
  if (host == "localhost") host = "127.0.0.1";
  if (host == "*") host = "0.0.0.0";
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&out.bytes, &v4, out.size = sizeof v4);
    return true;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&out.bytes, &v6, out.size = sizeof v6);
  return true;
}

std::uint16_t bound_port(const sockaddr_storage& address) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &address, sizeof v4);
  std::memcpy(&v6, &address, sizeof v6);
  return ntohs(address.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

}  // namespace

Result<ReservedAddress> ReservedAddress::take(const std::string& host, std::uint16_t port) {
  Address address;
  if (!parse_address(host, port, address)) {
    return Error{Errc::invalid_argument, fmt::format("'{}' is no address to bind; use an IPv4 or IPv6 address", host)};
  }
  const auto failed = [&] {
    const int code = errno;
    return Error{Errc::unavailable,
                 fmt::format("{}:{} cannot be bound: {}{}", host, port, std::strerror(code),
                             code == EADDRINUSE ? "; end what listens there, or give --bind another port" : "")};
  };
  FileDescriptor socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return failed();
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) return failed();
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.size) != 0) return failed();
  return ReservedAddress(std::move(socket), bound_port(address.bytes));
}

}  // namespace troupe::comm

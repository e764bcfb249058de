#include "comm/serve/reserved_address.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/front/tcp_address.h"

namespace troupe::comm {

Result<ReservedAddress> ReservedAddress::take(const std::string& host, std::uint16_t port) {
  auto address = TcpAddress::parse(host, port);
  if (!address) {
    return Error{Errc::invalid_argument, fmt::format("'{}' is no address to bind; use an IPv4 or IPv6 address", host)};
  }
  const auto failed = [&] {
    const int code = errno;
    return Error{Errc::unavailable,
                 fmt::format("{}:{} cannot be bound: {}{}", host, port, std::strerror(code),
                             code == EADDRINUSE ? "; end what listens there, or give --bind another port" : "")};
  };
  FileDescriptor socket(::socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return failed();
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0) return failed();
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address->bytes), &address->size) != 0) return failed();
  return ReservedAddress(std::move(socket), address->port());
}

}  // namespace troupe::comm

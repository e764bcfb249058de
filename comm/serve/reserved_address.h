#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// A TCP address that a server will listen on later: bound from now on, so that a port in use is known before anything
/// else is done, and nobody is answered yet (connections are refused). A server of this process or another that sets
/// SO_REUSEADDR can bind it meanwhile, and our own does; whoever listens first keeps it. Movable; any thread.
class ReservedAddress {
 public:
  /// `host` is an IPv4 or IPv6 address, localhost or * (every address); port 0 takes a free one.
  /// Errors: invalid_argument (no address), unavailable (in use, not permitted).
  static Result<ReservedAddress> take(const std::string& host, std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  ReservedAddress(FileDescriptor socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}

  FileDescriptor socket_;
  std::uint16_t port_ = 0;
};

}  // namespace troupe::comm

#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe::app {

/// Where `troupe serve` listens and what it wants of clients.
struct ServeAddress {
  /// Without brackets.
  std::string host;
  std::uint16_t port = 0;
  /// Empty: none wanted.
  std::string token;
  /// host:port as written in an address, brackets included.
  std::string text() const;
};

/// From `--protocol`, `--bind` and `--token-file`: loopback unless told otherwise, and off loopback only with a token.
/// Errors: invalid_argument (address, token), not_found (token file), failed_precondition (off loopback without a
/// token; says how).
Result<ServeAddress> serve_address(const std::string& protocol, const std::string& bind, const std::string& token_file);

}  // namespace troupe::app

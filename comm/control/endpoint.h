#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::comm {

/// A ZeroMQ address that Troupe uses: "tcp://host:port" (port may be "*") or "ipc:///absolute/path".
struct Endpoint {
  /// ipc paths are absolute and at most 107 bytes long, what a sockaddr_un holds.
  enum class Kind : std::uint8_t { tcp, ipc };
  Kind kind = Kind::ipc;
  /// tcp: as written, brackets of IPv6 included.
  std::string host;
  /// tcp: digits or "*".
  std::string port;
  /// ipc.
  std::string path = {};
};

/// Errors: invalid_argument (another scheme, an abstract or overlong ipc path, a bad port).
Result<Endpoint> parse_endpoint(const std::string& text);

/// Whether a tcp address can only be reached from this machine: 127.0.0.0/8, ::1 or localhost.
bool is_loopback(const Endpoint& endpoint) noexcept;

/// Whether it listens on every address of this machine: "*", 0.0.0.0 or ::.
bool is_wildcard(const Endpoint& endpoint) noexcept;

/// A bound tcp endpoint as others dial it: with `host` in place of its own; as it is for an empty host.
std::string with_host(const std::string& endpoint, const std::string& host);

/// Makes the folder of an ipc path with mode 0700, or checks that nobody else can enter it.
/// Errors: failed_precondition (others may enter; names the chmod), those of file_error.
Result<void> prepare_ipc_folder(const Endpoint& endpoint);

}  // namespace troupe::comm

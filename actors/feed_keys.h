#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "comm/control/io_loop.h"

namespace troupe {

// CURVE keys of the sockets over which other hosts' decoders reach the feeds. They lie in the runtime directory (mode 0700) in
// files of mode 0600, because hosts get no secrets in arguments or environment.

/// The feeds' side: written by `run --listen`, read by learners. One server key, one allowed client.
Result<void> write_feed_server(const std::string& runtime_dir, const CurveServer& keys);
/// Absent file: no value.
Result<std::optional<CurveServer>> read_feed_server(const std::string& runtime_dir);

/// The decoders' side: written by `troupe node` from its token. The server's key comes with each feed's address.
Result<void> write_feed_client(const std::string& runtime_dir, const CurveClient& keys);
Result<std::optional<CurveClient>> read_feed_client(const std::string& runtime_dir);

}  // namespace troupe

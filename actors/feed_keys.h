#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "comm/control/io_loop.h"

namespace troupe::actors {

// CURVE keys (CurveZMQ, ZeroMQ RFC 26; Z85 text of 40 characters) of the sockets over which other hosts' decoders reach
// the feeds. They lie in the runtime directory (mode 0700) in files of mode 0600, because host processes get no secrets
// in arguments or environment. Errors of reading: those of read_file; data_loss for a file that is no JSON object.

/// The feeds' side, feed-server.json: {"secret": server's secret key, "allowed": {client's public key: "10.1.0.0/16",
/// the addresses that it is taken from, or ""}}. Written by `run --listen` whenever the list of nodes changes, read by
/// learners and rollout workers. Errors: those of write_file_durably.
Result<void> write_feed_server(const std::string& runtime_dir, const std::string& secret_key,
                               const ClientKeys::Ranges& clients);
/// For a socket of this loop: its list of clients is read again every 5 s while the socket lives, so that a key that
/// the run does not list any more is deaf. Absent file: no value.
Result<std::optional<CurveServer>> open_feed_server(IoLoop& loop, const std::string& runtime_dir);

/// The decoders' side, feed-client.json: {"public", "secret"}. Written by `troupe node` from its token file; server_key
/// stays empty, since the server's key comes with each feed's address. Errors: those of write_file.
Result<void> write_feed_client(const std::string& runtime_dir, const CurveClient& keys);
/// Absent file: no value.
Result<std::optional<CurveClient>> read_feed_client(const std::string& runtime_dir);

}  // namespace troupe::actors

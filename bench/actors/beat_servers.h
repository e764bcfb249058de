#pragma once

#include <cstddef>
#include <string>

namespace troupe::bench {

/// Bytes of the two frames of a message: envelope and payload.
struct FrameBytes {
  std::size_t envelope = 0, payload = 0;
};

/// A controller as a job has it: service, actor, bridge, loop, and the socket of `run --listen`. Writes the token file
/// with which nodes join, then runs until SIGTERM. Called before any thread runs. Returns an exit code.
int serve_controller(const std::string& token_file);
/// The floor: a blocking ROUTER with CURVE that takes every key, and answers two frames with two of this size.
int serve_raw_beats(const std::string& token_file, FrameBytes answer);

}  // namespace troupe::bench

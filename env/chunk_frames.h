#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "env/env_factory.h"

namespace troupe::env {

/// Control steps of a policy step whose pictures its observation holds beside the newest, for policies that see how a
/// chunk of actions went (docs/env.md#frames-of-a-chunk).
struct ChunkFrames {
  /// Control steps since the chunk began, ascending, 0 to stride - 1; empty: observations hold the newest alone.
  std::vector<std::int64_t> offsets = {};
  /// Control steps S of a chunk, that is those of its actions that are executed.
  std::int64_t stride = 1;

  /// F: pictures of an observation.
  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()) + 1; }
};

/// What environments with `frames` observe: every picture, u8 [H,W,C], becomes one of F pictures that stand one above
/// the other, oldest first, u8 [F H,W,C]. Other fields are as they were. Errors: those below; none without offsets.
Result<EnvSpec> with_chunk_frames(EnvSpec spec, const ChunkFrames& frames);
/// The description that with_chunk_frames() made `spec` of.
EnvSpec without_chunk_frames(EnvSpec spec, const ChunkFrames& frames);

/// Environments of `factory` that observe the frames of the chunk that ended: in front of control step c S of an
/// episode those of steps (c - 1) S + offsets, then that of step c S. Frames that there are not yet are the newest: all
/// of them at an episode's first observation, later ones where an episode ends inside a chunk. Policy steps must follow
/// each other every S control steps from the episode's beginning on. A frame is drawn where an offset names its step,
/// also inside a chunk of environments that observe on demand. `factory` itself where frames has no offsets. Errors:
/// invalid_argument (an environment without pictures; offsets that do not ascend or do not lie below the stride).
Result<std::shared_ptr<const EnvFactory>> with_chunk_frames(std::shared_ptr<const EnvFactory> factory,
                                                            const ChunkFrames& frames);

}  // namespace troupe::env

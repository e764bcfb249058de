#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/serve/ndarray.h"

namespace troupe::workers {

/// A named vector of a robot: "joint_position", 7 values.
struct PolicyVector {
  std::string name;
  std::int64_t width = 0;
};

/// What a policy wants to see and what it gives.
struct PolicyInfo {
  /// Of the checkpoint, for logs and health.
  std::string name;
  /// Tag, such as oxe_droid.
  std::string embodiment;
  /// Camera keys, in canvas order.
  std::vector<std::string> views;
  /// Vectors in order of concatenation.
  std::vector<PolicyVector> state;
  /// Vectors in order of concatenation.
  std::vector<PolicyVector> action;
  /// Rows of an action chunk.
  std::int64_t horizon = 0;
  /// Pixels of one view after preprocessing; frames of other sizes are resized.
  std::int64_t image_height = 0, image_width = 0;
  /// How many frames per view a call may bring, such as {1, 4, 8, 9}
  std::vector<std::int64_t> frames_per_call;
  /// False: a request may leave the instruction out.
  bool takes_prompt = true;

  std::int64_t action_width() const {
    std::int64_t width = 0;
    for (const PolicyVector& v : action) width += v.width;
    return width;
  }
};

/// What one robot shows: cameras u8 [H, W, 3] or [T, H, W, 3] by view, state vectors f32 or f64 [width] by name.
struct Observation {
  /// Whose state the policy keeps between calls; never empty.
  std::string episode;
  /// The instruction as the user wrote it.
  std::string prompt;
  /// One for each of PolicyInfo::views.
  std::map<std::string, NdArray> images;
  /// One for each of PolicyInfo::state.
  std::map<std::string, NdArray> state;
};

/// De-normalised actions.
struct ActionChunk {
  /// PolicyInfo::horizon of the policy.
  std::int64_t rows = 0;
  /// PolicyInfo::action_width() of the policy.
  std::int64_t width = 0;
  /// Row-major, in the robot's units, keys in the order of PolicyInfo::action.
  std::vector<float> values;
};

/// A trained policy behind a server or an evaluation: DreamZeroPolicy for robots, AgentPolicy for environments. It
/// keeps what an episode needs between calls, by Observation::episode, until reset(). Not thread-safe: one thread at
/// a time. act() may throw (LibTorch does); PolicyService turns that into an error of the request.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual const PolicyInfo& info() const = 0;
  /// One result for each observation, in order; a bad observation costs only its own result. No episode twice in a
  /// call. Errors in results: invalid_argument naming the key (a missing or unknown one, a wrong shape or dtype).
  virtual std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) = 0;
  /// Forgets an episode's state; unknown episodes are ignored.
  virtual void reset(const std::string& episode) = 0;
};

}  // namespace troupe::workers

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/serve/ndarray.h"

namespace troupe {

/// A named vector of a robot: "joint_position", 7 values.
struct PolicyVector {
  std::string name;
  std::int64_t width = 0;
};

/// What a policy wants to see and what it gives.
struct PolicyInfo {
  std::string name;                  ///< of the checkpoint, for logs and health
  std::string embodiment;            ///< tag, such as oxe_droid
  std::vector<std::string> views;    ///< camera keys, in canvas order
  std::vector<PolicyVector> state;   ///< in order of concatenation
  std::vector<PolicyVector> action;  ///< in order of concatenation
  std::int64_t horizon = 0;          ///< rows of an action chunk
  std::int64_t image_height = 0,
               image_width = 0;               ///< of one view after preprocessing; pictures of other sizes are resized
  std::vector<std::int64_t> frames_per_call;  ///< how many frames per view a call may bring, such as {1, 4, 8, 9}
  bool takes_prompt = true;                   ///< false: a request may leave the instruction out

  std::int64_t action_width() const {
    std::int64_t width = 0;
    for (const PolicyVector& v : action) width += v.width;
    return width;
  }
};

/// What one robot shows: cameras u8 [H, W, 3] or [T, H, W, 3] by view, state vectors f32 or f64 [width] by name.
struct Observation {
  std::string episode;                    ///< whose state the policy keeps between calls; never empty
  std::string prompt;                     ///< the instruction as the user wrote it
  std::map<std::string, NdArray> images;  ///< one for each of PolicyInfo::views
  std::map<std::string, NdArray> state;   ///< one for each of PolicyInfo::state
};

/// De-normalised actions.
struct ActionChunk {
  std::int64_t rows = 0;      ///< PolicyInfo::horizon
  std::int64_t width = 0;     ///< PolicyInfo::action_width()
  std::vector<float> values;  ///< row-major, keys in the order of PolicyInfo::action
};

/// A trained policy behind a server or an evaluation. Not thread-safe: one thread at a time.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual const PolicyInfo& info() const = 0;
  /// One result for each observation, in order; a bad observation costs only its own result. No episode twice in a call.
  /// Errors in results: invalid_argument naming the key (a missing or unknown one, a wrong shape or dtype).
  virtual std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) = 0;
  /// Forgets an episode's state; unknown episodes are ignored.
  virtual void reset(const std::string& episode) = 0;
};

}  // namespace troupe

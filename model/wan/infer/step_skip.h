#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace troupe::model {

/// Which denoising steps evaluate the network; a skipped step reuses the last velocities. An approximation, so
/// off by default: the published server's default is steps_8. The fixed masks evaluate, of 16 steps,
///     5: 0 1 2 7 12     6: 0 1 5 10 14 15     7: 0 1 2 6 10 14 15     8: 0 1 2 6 10 13 14 15
enum class StepSkip : std::uint8_t { none, steps_5, steps_6, steps_7, steps_8, dynamic };

/// Denoising steps that the fixed masks are made for.
inline constexpr std::int64_t kSkipMaskSteps = 16;

/// "none", "5", "6", "7", "8" (evaluated steps of 16) or "dynamic". invalid_argument names the value and the choices.
Result<StepSkip> to_step_skip(std::string_view name);

/// Decides step by step for one episode. Ask evaluates() once for each step, in order, and hand the velocity of every
/// evaluated step to record().
///
/// The dynamic rule runs while fewer than two velocities are known. Then it looks at the cosine similarity of the last
/// two, mean over samples: above 0.95 it skips four steps, above 0.93 two, and runs the step after those whatever the
/// similarity; otherwise it runs.
class StepSkipRule {
 public:
  explicit StepSkipRule(StepSkip skip) : skip_(skip) {}

  /// Whether the next step runs the network. Throws c10::Error past the sixteenth step of a fixed mask.
  bool evaluates();
  /// The guided video velocity of an evaluated step, samples in axis 0.
  void record(const at::Tensor& velocity);

 private:
  bool decide_dynamically();

  StepSkip skip_;
  std::int64_t step_ = 0;
  std::int64_t countdown_ = 0;  ///< steps until one runs unasked
  at::Tensor last_, before_;    ///< velocities as rows, f32
};

}  // namespace troupe::model

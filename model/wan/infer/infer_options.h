#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/wan/infer/step_skip.h"

namespace troupe {

/// How a policy call denoises (dreamzero-model.md 6.1). The defaults are the released behaviour but for step skipping,
/// which is off.
struct InferOptions {
  std::int64_t steps = 16;
  double cfg_scale = 5.0;  ///< 1: no guidance, the unconditional branch is not run
  double shift = 5.0;
  std::uint64_t noise_seed = 1140;
  StepSkip skip = StepSkip::none;
  bool state_self_only = false;    ///< state tokens see only themselves, as in training (6.4)
  bool decouple_noise = false;     ///< video stops at video_final_noise instead of zero (6.6)
  double video_final_noise = 0.8;  ///< with decouple_noise

  /// Copies of each sample that run side by side: with and without the prompt, or only with it.
  std::int64_t branches() const { return cfg_scale == 1.0 ? 1 : 2; }
};

/// invalid_argument for values that have no meaning, naming the option and what it may be.
Result<void> check_options(const InferOptions& options);

}  // namespace troupe

#pragma once

#include <array>
#include <cstdint>

#include "base/enum_names.h"
#include "base/result.h"
#include "model/wan/infer/step_skip.h"

namespace troupe::model {

/// How a sample goes from one noise level to the next.
enum class DenoiseSampler : std::uint8_t {
  /// of order 2 (unipc.h), as the released policies run
  unipc,
  /// of order 1 (euler.h)
  euler,
};
constexpr auto enum_names(DenoiseSampler) { return std::array{"unipc", "euler"}; }

/// How a policy call denoises (docs/inference.md#options). The defaults are the released behaviour but for step
/// skipping, which is off.
struct InferOptions {
  DenoiseSampler sampler = DenoiseSampler::unipc;
  std::int64_t steps = 16;
  /// 1: no guidance, the unconditional branch is not run
  double cfg_scale = 5.0;
  double shift = 5.0;
  std::uint64_t noise_seed = 1140;
  StepSkip skip = StepSkip::none;
  /// state tokens see only themselves, as in training
  bool state_self_only = false;
  /// video stops at video_final_noise instead of zero
  bool decouple_noise = false;
  /// sigma at which the video stops; read with decouple_noise alone
  double video_final_noise = 0.8;

  /// Copies of each sample that run side by side: with and without the prompt, or only with it.
  std::int64_t branches() const { return cfg_scale == 1.0 ? 1 : 2; }
};

/// invalid_argument for values that have no meaning, naming the option and what it may be.
Result<void> check_options(const InferOptions& options);

}  // namespace troupe::model

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/wan/infer/dit_infer.h"
#include "model/wan/infer/infer_options.h"
#include "model/wan/infer/unipc.h"

namespace troupe {

/// Fresh standard normal noise in f32 on the CPU, the same for one seed and shape: the numbers of torch.randn with a
/// CPU generator of that seed. Each tensor has a generator of its own, so video and action noise start with equal
/// numbers, as in the reference (dreamzero-model.md 9, item 22).
at::Tensor seeded_noise(std::uint64_t seed, at::IntArrayRef shape);

/// One episode's part of a call.
struct DenoiseRequest {
  DitEpisode* episode = nullptr;
  at::Tensor video_noise;   ///< [B, Cz, nfpb, h, w]
  at::Tensor action_noise;  ///< [B, napb, D]
  at::Tensor states;        ///< [B, nspb, state dimensions]
};

struct Denoised {
  at::Tensor video;             ///< f32 [B, Cz, nfpb, h, w]
  at::Tensor actions;           ///< f32 [B, napb, D]
  std::vector<bool> evaluated;  ///< per step: the network ran for this episode
};

/// What one step did to one request, for tests and diagnosis.
struct DenoiseStep {
  std::size_t request = 0;
  std::int64_t step = 0;
  const Velocities* velocities = nullptr;  ///< of this request's samples; null when the step was skipped
  at::Tensor video, actions;               ///< the samples after the step
};
using DenoiseObserver = std::function<void(const DenoiseStep&)>;

/// Denoises the next block of any number of episodes together: one forward per step for all that run it, with and
/// without guidance side by side (dreamzero-model.md 6.3, step 7).
///     v_video = v_uncond + cfg_scale (v_cond - v_uncond),   v_action = v_cond
/// Samples, guidance and the sampler are f32 (f64 with an f64 network). Each episode skips steps for itself.
class Denoiser {
 public:
  /// `options` must pass check_options.
  explicit Denoiser(const InferOptions& options);

  /// Errors: throws c10::Error for shapes that do not fit.
  std::vector<Denoised> run(DitInference& dit, std::span<const DenoiseRequest> requests,
                            const DenoiseObserver& observer = {}) const;

  const NoiseLevels& video_levels() const { return video_plan_->levels(); }
  const NoiseLevels& action_levels() const { return action_plan_->levels(); }

 private:
  InferOptions options_;
  std::shared_ptr<const UniPcPlan> video_plan_, action_plan_;
};

}  // namespace troupe

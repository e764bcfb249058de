#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/wan/infer/dit_infer.h"
#include "model/wan/infer/infer_options.h"
#include "model/wan/infer/noise_levels.h"
#include "model/wan/infer/unipc.h"

namespace troupe::model {

/// Fresh standard normal noise in f32 on the CPU, the same for one seed and shape: the numbers of torch.randn with a
/// CPU generator of that seed. Each tensor has a generator of its own, so video and action noise start with equal
/// numbers, as in the reference.
at::Tensor seeded_noise(std::uint64_t seed, at::IntArrayRef shape);

/// One step of a run in which the actions are drawn from a normal distribution (Flow-SDE, model/policy/flow_step.h),
/// for a policy that learns from its log-probabilities. All other steps, and the video in every step, follow the flow.
struct ActionDraw {
  std::int64_t step = 0;
  /// standard normal f32 [B, napb, D]
  at::Tensor noise;
  /// a of flow_weights; 0: an Euler step
  double noise_level = 0;
};

/// A drawn step, from which a learner computes its log-probability again (action_density.h).
struct ActionTransition {
  std::int64_t step = 0;
  /// f32: video [B, Cz, nfpb, h, w] and actions [B, napb, D] before the step, and the drawn actions
  at::Tensor video, actions, next;
  /// f32 [B, napb, D], of every element of `next`
  at::Tensor logp;
};

/// One episode's part of a call.
struct DenoiseRequest {
  DitEpisode* episode = nullptr;
  /// standard normal f32 [B, Cz, nfpb, h, w]: nfpb latent frames of a block, Cz latent channels
  at::Tensor video_noise;
  /// standard normal f32 [B, napb, D]: napb actions of a block, D padded action dimensions
  at::Tensor action_noise;
  /// [B, nspb, state dimensions], normalised and padded; cast to the network's dtype
  at::Tensor states;
  /// with DenoiseSampler::euler alone
  std::optional<ActionDraw> draw = std::nullopt;
};

struct Denoised {
  /// f32 [B, Cz, nfpb, h, w], clean latents (with decoupled noise: at video_final_noise)
  at::Tensor video;
  /// f32 [B, napb, D], still normalised
  at::Tensor actions;
  /// per step: the network ran for this episode
  std::vector<bool> evaluated;
  /// of DenoiseRequest::draw
  std::optional<ActionTransition> transition = std::nullopt;
};

/// What one step did to one request, for tests and diagnosis.
struct DenoiseStep {
  std::size_t request = 0;
  std::int64_t step = 0;
  /// of this request's samples; null when the step was skipped
  const Velocities* velocities = nullptr;
  /// the samples after the step
  at::Tensor video, actions;
};
using DenoiseObserver = std::function<void(const DenoiseStep&)>;

/// Denoises the next block of any number of episodes together: one forward per step for all that run it, with and
/// without guidance side by side (classifier-free guidance, arXiv:2207.12598 eq. 6, for the video alone).
///     v_video = v_uncond + cfg_scale (v_cond - v_uncond),   v_action = v_cond
/// Samples, guidance and the sampler are f32 (f64 with an f64 network). Each episode skips steps for itself.
class Denoiser {
 public:
  /// `options` must pass check_options.
  explicit Denoiser(const InferOptions& options);

  /// Errors: throws c10::Error for shapes that do not fit, and for a draw with another sampler than Euler or in a step
  /// that is skipped.
  std::vector<Denoised> run(DitInference& dit, std::span<const DenoiseRequest> requests,
                            const DenoiseObserver& observer = {}) const;

  const NoiseLevels& video_levels() const { return video_levels_; }
  const NoiseLevels& action_levels() const { return action_levels_; }

 private:
  InferOptions options_;
  NoiseLevels action_levels_, video_levels_;
  /// null with Euler, which needs the levels alone
  std::shared_ptr<const UniPcPlan> video_plan_, action_plan_;
};

}  // namespace troupe::model

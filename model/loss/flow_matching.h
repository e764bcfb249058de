#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

// Flow matching for video and actions (arXiv:2210.02747; schedule and weights of dreamzero0/dreamzero). Shape legend: B
// samples, C latent channels, F latent frames, A action tokens, D action dimensions, h w latent rows and columns. A
// sample is known by its position: the place in the sampler's order in training, the index of the window in evaluation.

/// Entries of the training table.
inline constexpr std::int64_t kScheduleSize = 1000;

/// The training table, shift 5, sigma_min 0. A timestep id indexes it; id 0 is the noisiest.
///     s_i = 1 - i/1000   sigma_i = 5 s_i / (1 + 4 s_i)   t_i = 1000 sigma_i
///     y_i = exp(-2 ((t_i - 500)/1000)^2)   w_i = (y_i - min y) * 1000 / sum_j (y_j - min y)
/// All three are f32 [1000] on the CPU. The weight of id 0 is zero; the mean weight is one.
struct FlowSchedule {
  at::Tensor sigmas;
  at::Tensor timesteps;
  at::Tensor weights;
};
FlowSchedule make_flow_schedule();

/// Standard normal numbers, as many for each position: element e of the sample at position p is draw e of
/// CounterRng(seed, stream, p), so a sample's noise depends neither on the batch it is in nor on the number of ranks.
void draw_keyed_noise(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                      std::span<float> out);
/// The same as f32 [B, sample_shape...].
at::Tensor keyed_noise(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                       const std::vector<std::int64_t>& sample_shape);

/// Video timestep ids i64 [B, F], uniform in 0..999, keyed like keyed_noise and tied inside blocks.
at::Tensor draw_video_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                          std::int64_t frames, std::int64_t frames_per_block);

/// Video timestep ids i64 [B, F] of the high-noise modes (model.noise), keyed and tied like draw_video_ids: frame f's
/// id is that of r = beta_quantile(u, a, b), u = (n + 1/2) / 2^32, n its 32-bit draw.
at::Tensor draw_beta_video_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                               std::int64_t frames, std::int64_t frames_per_block, double a, double b);

/// Action ids i64 [B, A] of the decoupled mode: uniform in 0..999 and independent for each action, keyed like
/// keyed_noise.
at::Tensor draw_action_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                           std::int64_t actions);

/// Gives every frame of a block (frames 1.. in groups of frames_per_block) the id of the block's first; frame 0 keeps
/// its own.
at::Tensor tie_video_ids(const at::Tensor& ids_BF, std::int64_t frames_per_block);

/// Action ids i64 [B, A] of the coupled mode: each block's video id, actions_per_block times.
at::Tensor coupled_action_ids(const at::Tensor& video_ids_BF, std::int64_t frames_per_block,
                              std::int64_t actions_per_block);

/// Ids of draws r in [0, 1): clamp(trunc((1 - r) * 1000), 0, 999) in f32. A draw near one is a noisy frame.
at::Tensor ids_from_beta_draws(const at::Tensor& draws);

/// A noisy sample and the velocity that the network learns.
struct FlowMix {
  at::Tensor noisy;   ///< (1 - sigma) x0 + sigma eps
  at::Tensor target;  ///< eps - x0
};

/// Mixes in x0's dtype: sigma is rounded to it first, and each operation rounds. sigma must broadcast against x0.
FlowMix mix_noise(const at::Tensor& clean, const at::Tensor& noise, const at::Tensor& sigma);

/// mean_{b,f}( w[b,f] * mean_{c,row,col}(v - target)^2 ), squares in f32 (f64 for f64 input).
///
/// Shapes: velocity [B,C,F,h,w]; target likewise, cropped to the velocity's rows and columns when it has more; weights
/// [B,F]. Errors: throws c10::Error on a shape mismatch.
at::Tensor video_flow_loss(const at::Tensor& velocity, const at::Tensor& target, const at::Tensor& weights);

/// mean_{b,k}( w[b,k] * (1/D) sum_d mask * real[b] * (v - target)^2 ). Divides by the padded D, as the reference does.
///
/// Shapes: velocity, target [B,A,D]; mask bool [B,A,D]; real bool [B], per sample; weights [B,A].
/// Errors: throws c10::Error on a shape mismatch.
at::Tensor action_flow_loss(const at::Tensor& velocity, const at::Tensor& target, const at::Tensor& mask,
                            const at::Tensor& real, const at::Tensor& weights);

/// What the two losses multiply each squared error by, in f32 (f64 where the velocity is), to broadcast to the
/// velocity: [B,1,F,1,1], and [B,A,D]. Shapes and errors as theirs.
at::Tensor video_flow_coefficients(const at::Tensor& velocity, const at::Tensor& weights);
at::Tensor action_flow_coefficients(const at::Tensor& velocity, const at::Tensor& mask, const at::Tensor& real,
                                    const at::Tensor& weights);

}  // namespace troupe::model

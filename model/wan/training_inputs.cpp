#include "model/wan/training_inputs.h"

#include <ATen/ATen.h>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"

namespace troupe::model {
namespace {

struct Streams {
  std::uint64_t video_noise, video_timestep, action_noise, action_timestep;
};

Streams streams_of(NoiseMode mode) {
  if (mode == NoiseMode::train) {
    return {rng_stream::video_noise, rng_stream::video_timestep, rng_stream::action_noise, rng_stream::action_timestep};
  }
  return {rng_stream::eval_video_noise, rng_stream::eval_video_timestep, rng_stream::eval_action_noise,
          rng_stream::eval_action_timestep};
}

at::Tensor video_ids_of(const NoiseConfig& noise, std::uint64_t seed, std::uint64_t stream,
                        std::span<const std::uint64_t> positions, std::int64_t frames, std::int64_t frames_per_block) {
  if (noise.decouple_video_action) {
    return draw_beta_video_ids(seed, stream, positions, frames, frames_per_block, noise.video_noise_beta_alpha,
                               noise.video_noise_beta_beta);
  }
  if (noise.high_noise_emphasis) {
    return draw_beta_video_ids(seed, stream, positions, frames, frames_per_block, noise.high_noise_beta_alpha, 1.0);
  }
  return draw_video_ids(seed, stream, positions, frames, frames_per_block);
}

}  // namespace

Batch make_training_inputs(const at::Tensor& latents, const at::Tensor& actions,
                           std::span<const std::uint64_t> positions, std::uint64_t seed, NoiseMode mode,
                           std::int64_t frames_per_block, const NoiseConfig& noise) {
  const auto count = static_cast<std::int64_t>(positions.size());
  TORCH_CHECK(latents.dim() == 5 && actions.dim() == 3 && latents.size(0) == count && actions.size(0) == count,
              "make_training_inputs: latents ", latents.sizes(), " and actions ", actions.sizes(), " for ", count,
              " positions");
  const auto frames = latents.size(2), blocks = (frames - 1) / frames_per_block;
  TORCH_CHECK(blocks >= 1 && (frames - 1) % frames_per_block == 0 && actions.size(1) % blocks == 0,
              "make_training_inputs: ", frames, " latent frames and ", actions.size(1),
              " actions do not make blocks of ", frames_per_block, " frames");
  const auto streams = streams_of(mode);
  static const FlowSchedule schedule = make_flow_schedule();

  const auto video_ids = video_ids_of(noise, seed, streams.video_timestep, positions, frames, frames_per_block);
  const auto action_ids = noise.decouple_video_action
                              ? draw_action_ids(seed, streams.action_timestep, positions, actions.size(1))
                              : coupled_action_ids(video_ids, frames_per_block, actions.size(1) / blocks);
  const auto video_noise = keyed_noise(seed, streams.video_noise, positions, latents.sizes().slice(1).vec());
  const auto action_noise = keyed_noise(seed, streams.action_noise, positions, actions.sizes().slice(1).vec());
  const auto video = mix_noise(latents, video_noise, schedule.sigmas.index({video_ids}).view({count, 1, frames, 1, 1}));
  const auto action = mix_noise(actions, action_noise, schedule.sigmas.index({action_ids}).unsqueeze(2));
  return {{batch_keys::kCleanLatents, latents},
          {batch_keys::kNoisyLatents, video.noisy},
          {batch_keys::kVideoTarget, video.target},
          {batch_keys::kVideoIds, video_ids.to(latents.device())},
          {batch_keys::kNoisyActions, action.noisy},
          {batch_keys::kActionTarget, action.target},
          {batch_keys::kActionIds, action_ids.to(actions.device())}};
}

void cast_inputs(Batch& batch, at::ScalarType dtype) {
  for (const char* name : {batch_keys::kCleanLatents, batch_keys::kFirstFrame, batch_keys::kContext, batch_keys::kClip,
                           batch_keys::kAction, batch_keys::kState}) {
    const auto found = batch.find(name);
    if (found != batch.end()) found->second = found->second.to(dtype);
  }
}

}  // namespace troupe::model

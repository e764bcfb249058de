#include "model/wan/training_inputs.h"

#include <ATen/ATen.h>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"

namespace troupe {
namespace {

struct Streams {
  std::uint64_t video_noise, video_timestep, action_noise;
};

Streams streams_of(NoiseMode mode) {
  if (mode == NoiseMode::train) {
    return {rng_stream::video_noise, rng_stream::video_timestep, rng_stream::action_noise};
  }
  return {rng_stream::eval_video_noise, rng_stream::eval_video_timestep, rng_stream::eval_action_noise};
}

}  // namespace

Batch make_training_inputs(const at::Tensor& latents, const at::Tensor& actions,
                           std::span<const std::uint64_t> positions, std::uint64_t seed, NoiseMode mode,
                           std::int64_t frames_per_block) {
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

  const auto video_ids = draw_video_ids(seed, streams.video_timestep, positions, frames, frames_per_block);
  const auto action_ids = coupled_action_ids(video_ids, frames_per_block, actions.size(1) / blocks);
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

}  // namespace troupe

#include "bench/model/dit_case.h"

#include <ATen/ATen.h>

#include <numeric>

#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"
#include "model/wan/dit_units.h"
#include "model/wan/training_inputs.h"
#include "tests/model/wan/network_run.h"

namespace troupe::bench {
namespace {

constexpr std::uint64_t kSeed = 17;

ModelConfig config_of(const DitSize& size) {
  ModelConfig config;
  config.dit.dim = size.dim;
  config.dit.num_heads = size.num_heads;
  config.dit.num_layers = size.num_layers;
  config.dit.ffn_dim = size.ffn_dim;
  return config;
}

}  // namespace

Batch make_dit_batch(const DitSize& size, at::ScalarType dtype) { return make_dit_batch(config_of(size), size, dtype); }

Batch make_dit_batch(const ModelConfig& config, const DitSize& size, at::ScalarType dtype) {
  std::vector<std::uint64_t> positions(static_cast<std::size_t>(size.samples));
  std::iota(positions.begin(), positions.end(), 0U);
  const auto draw = [&](std::uint64_t stream, const std::vector<std::int64_t>& shape) {
    return keyed_noise(kSeed, 1000 + stream, positions, shape).to(dtype);
  };
  const auto frames = 1 + size.blocks * config.latent_frames_per_block, actions = size.blocks * size.actions_per_block;
  auto batch = make_training_inputs(draw(0, {config.dit.out_dim, frames, size.latent_height, size.latent_width}),
                                    draw(1, {actions, config.dit.action_dim}).tanh(), positions, kSeed,
                                    NoiseMode::train, config.latent_frames_per_block);
  batch[batch_keys::kState] = draw(3, {size.blocks * config.states_per_block, config.dit.max_state_dim});
  batch[batch_keys::kContext] = draw(4, {size.text_tokens, config.text_encoder.dim});
  batch[batch_keys::kClip] = draw(5, {size.image_tokens, config.image_encoder.dim});
  if (config.dit.concat_first_frame_latent)
    batch[batch_keys::kFirstFrame] = draw(6, {4 + config.dit.out_dim, frames, size.latent_height, size.latent_width});
  const auto flags = at::TensorOptions().dtype(at::kBool);
  batch[batch_keys::kActionMask] = at::ones({size.samples, actions, config.dit.action_dim}, flags);
  batch[batch_keys::kHasRealAction] = at::ones({size.samples}, flags);
  return batch;
}

DitSize dit_size_of(const JobConfig& job) {
  const std::int64_t side = job.model.image_encoder.image_size / job.model.image_encoder.patch_size;
  return {.latent_height = job.model.target_height / job.model.codec.stride_hw,
          .latent_width = job.model.target_width / job.model.codec.stride_hw,
          .blocks = job.data.window.chunks,
          .actions_per_block = job.data.window.action_horizon,
          .text_tokens = job.model.text_encoder.max_length,
          .image_tokens = 1 + side * side,
          .samples = job.training.micro_batch_size};
}

std::vector<ParamView> DitCase::views() const {
  std::vector<ParamView> views;
  for (const auto& unit : network->units()) {
    auto& view = views.emplace_back();
    for (const auto& spec : unit.params)
      view.set(spec.name, weights.at(spec.name).detach().requires_grad_(true), spec.follows);
  }
  return views;
}

DitCase make_dit_case(const DitSize& size, at::ScalarType dtype) {
  DitCase made;
  made.config = config_of(size);
  made.max_blocks = size.blocks;
  made.network = std::make_shared<DitNetwork>(made.config, size.blocks);
  for (const auto& unit : made.network->units()) made.parameters += count_parameters(unit);
  made.weights = testing::random_parameters(made.network->units(), kSeed, dtype);
  made.batch = make_dit_batch(size, dtype);
  return made;
}

}  // namespace troupe::bench

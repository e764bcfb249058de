#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "configs/model_config.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"
#include "model/wan/training_inputs.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// A shape of the DiT that a test runs.
struct TinyShape {
  std::string name;
  std::int64_t blocks = 2;
  std::int64_t frames_per_block = 2;
  std::int64_t actions_per_block = 3;
  std::int64_t states_per_block = 1;
  std::int64_t max_blocks = 2;
  bool image_to_video = false;
  bool decoupled = false;

  friend std::ostream& operator<<(std::ostream& out, const TinyShape& s) { return out << s.name; }
};

inline ModelConfig tiny_config(const TinyShape& shape) {
  ModelConfig config;
  config.dit.type = shape.image_to_video ? "i2v" : "ti2v";
  config.dit.concat_first_frame_latent = shape.image_to_video;
  config.dit.dim = 24;
  config.dit.num_heads = 2;
  config.dit.num_layers = 2;
  config.dit.ffn_dim = 40;
  config.dit.freq_dim = 16;
  config.dit.out_dim = 3;
  config.dit.in_dim = shape.image_to_video ? 3 + 4 + 3 : 3;
  config.dit.encoder_hidden = 20;
  config.dit.action_dim = 5;
  config.dit.max_state_dim = 7;
  config.text_encoder.dim = 12;
  config.image_encoder.dim = 14;
  config.latent_frames_per_block = shape.frames_per_block;
  config.states_per_block = shape.states_per_block;
  return config;
}

/// A whole batch with targets; sample b stands at position first + b, and everything of it depends on that alone.
inline Batch tiny_batch(const TinyShape& shape, std::int64_t count, at::ScalarType dtype, std::uint64_t first = 0,
                        NoiseMode mode = NoiseMode::train) {
  const auto config = tiny_config(shape);
  std::vector<std::uint64_t> positions;
  for (std::int64_t b = 0; b < count; ++b) positions.push_back(first + static_cast<std::uint64_t>(b));
  const auto draw = [&](std::uint64_t stream, const std::vector<std::int64_t>& size) {
    return keyed_noise(99, 1000 + stream, positions, size).to(dtype);
  };
  const auto frames = 1 + shape.blocks * shape.frames_per_block, actions = shape.blocks * shape.actions_per_block;
  const auto d_action = config.dit.action_dim;
  auto batch = make_training_inputs(draw(0, {config.dit.out_dim, frames, 4, 6}), draw(1, {actions, d_action}).tanh(),
                                    positions, 7, mode, shape.frames_per_block);
  if (shape.decoupled) {
    batch[batch_keys::kActionIds] = (draw(2, {actions}).abs() * 400).to(at::kLong).clamp(0, kScheduleSize - 1);
  }
  batch[batch_keys::kState] = draw(3, {shape.blocks * shape.states_per_block, config.dit.max_state_dim});
  batch[batch_keys::kContext] = draw(4, {6, config.text_encoder.dim});
  batch[batch_keys::kClip] = draw(5, {5, config.image_encoder.dim});
  batch[batch_keys::kActionMask] = draw(6, {actions, d_action}) > -0.5;
  batch[batch_keys::kHasRealAction] = draw(7, {}) > -1.5;
  if (shape.image_to_video) {
    batch[batch_keys::kFirstFrame] = draw(8, {4 + config.dit.out_dim, frames, 4, 6});
  }
  return batch;
}

}  // namespace troupe::testing

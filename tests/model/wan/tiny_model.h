#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <ostream>
#include <random>
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

/// What a sample is told: the words are a function of `id`, and `tokens` of them are real.
struct TinyPrompt {
  std::uint64_t id = 0;
  std::int64_t tokens = 0;
};

/// The batch with text features as the encoder gives them, a prompt for each sample: `length` rows, zeros behind it.
inline Batch with_prompts(Batch batch, const std::vector<TinyPrompt>& prompts, std::int64_t length) {
  const auto width = batch.at(batch_keys::kContext).size(2);
  std::vector<at::Tensor> features;
  for (const auto& prompt : prompts) {
    const auto words = keyed_noise(99, 2000, std::vector<std::uint64_t>{prompt.id}, {length, width})[0];
    features.push_back(words * (at::arange(length) < prompt.tokens).unsqueeze(1));
  }
  batch[batch_keys::kContext] = at::stack(features).to(batch.at(batch_keys::kContext).scalar_type());
  return batch;
}

/// Rows of text in these sets: more than a step of model/wan/text_rows.h.
inline constexpr std::int64_t kTinyText = 70;

/// Prompts of three samples each: none padded, nothing but padding, of different lengths (one a single token short, two
/// with the same beginning), all the same, two of three the same; then random ones.
inline std::vector<std::vector<TinyPrompt>> prompt_sets(std::size_t random) {
  std::vector<std::vector<TinyPrompt>> sets = {{{0, 70}, {1, 70}, {2, 70}}, {{0, 0}, {1, 0}, {2, 0}},
                                               {{0, 5}, {1, 69}, {0, 33}},  {{4, 9}, {4, 9}, {4, 9}},
                                               {{5, 70}, {5, 70}, {5, 70}}, {{6, 9}, {7, 20}, {6, 9}}};
  std::mt19937 draw(11);
  const auto below = [&draw](std::int64_t n) { return static_cast<std::int64_t>(draw()) % n; };
  for (std::size_t i = 0; i < random; ++i) {
    auto& set = sets.emplace_back();
    for (int b = 0; b < 3; ++b) {
      const auto id = static_cast<std::uint64_t>(below(3));
      set.push_back({id, below(4) == 0 ? 17 : below(kTinyText + 1)});
    }
  }
  return sets;
}

}  // namespace troupe::testing

#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/wan/dit_units.h"
#include "workers/inference/policy/dreamzero_policy.h"

namespace troupe::workers {

/// A policy of a few kilobytes: two cameras side by side, a state of three values, joints predicted relative to it.
inline PolicySpec tiny_spec() {
  PolicySpec spec;
  spec.name = "tiny";
  ModelConfig& m = spec.model;
  m.dit.dim = 24;
  m.dit.num_heads = 1;
  m.dit.num_layers = 2;
  m.dit.ffn_dim = 48;
  m.dit.freq_dim = 16;
  m.dit.in_dim = m.dit.out_dim = 16;
  m.dit.encoder_hidden = 16;
  m.dit.action_dim = 4;
  m.dit.max_state_dim = 5;
  m.text_encoder.vocab = 384;
  m.text_encoder.dim = m.text_encoder.dim_attn = 16;
  m.text_encoder.dim_ff = 32;
  m.text_encoder.num_heads = m.text_encoder.num_layers = 1;
  m.text_encoder.max_length = 64;
  m.image_encoder.image_size = 56;
  m.image_encoder.dim = 16;
  m.image_encoder.mlp_dim = 32;
  m.image_encoder.num_heads = 1;
  m.image_encoder.num_layers = 2;
  m.image_encoder.head_dim_out = 16;
  m.codec.channels = 16;
  m.target_height = 32;
  m.target_width = 64;
  spec.window.chunks = 2;
  spec.window.macro_stride = 8;
  spec.window.action_horizon = 8;
  spec.window.video_offsets = {0, 1, 2, 3, 4, 5, 6, 7};
  spec.image.height = spec.image.width = 32;
  spec.embodiment.tag = "tiny";
  spec.embodiment.views = {"front", "side"};
  spec.embodiment.layout = "horizontal";
  spec.embodiment.prompt = "single_view_human";
  const auto statistics = [](std::vector<double> low, std::vector<double> high) {
    FeatureStatistics s;
    s.min = s.q01 = low;
    s.max = s.q99 = high;
    s.mean = s.std = std::vector<double>(low.size(), 1.0);
    return std::vector<FeatureStatistics>{s};
  };
  spec.state = {{.name = "joints", .width = 2, .statistics = statistics({-1, -2}, {1, 2})},
                {.name = "gripper", .width = 1, .statistics = statistics({0}, {1})}};
  spec.action = {{.name = "joints", .width = 2, .relative = true, .statistics = statistics({-0.5, -0.25}, {0.5, 0.25})},
                 {.name = "gripper", .width = 1, .statistics = statistics({0}, {1})}};
  for (const PolicyKey& key : spec.state) spec.embodiment.state_keys.push_back(key.name);
  for (const PolicyKey& key : spec.action) spec.embodiment.action_keys.push_back(key.name);
  spec.embodiment.relative_action_keys = {"joints"};
  return spec;
}

/// Weights large enough that every path matters (initial ones keep the head at zero).
inline ParamView random_dit(const ModelConfig& model, unsigned seed) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> normal(0.0F, 0.15F);
  ParamView view;
  for (const UnitSpec& unit : dit_units(model)) {
    for (const ParamSpec& param : unit.params) {
      at::Tensor tensor = at::empty(param.shape, at::kFloat);
      float* values = tensor.mutable_data_ptr<float>();
      for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = normal(draw);
      view.set(param.name, tensor);
    }
  }
  return view;
}

inline std::unique_ptr<DreamZeroPolicy> tiny_policy(const PolicySpec& spec = tiny_spec(),
                                                    PolicyOptions options = {.steps = 3},
                                                    std::optional<kernels::ComputeDevice> device = std::nullopt) {
  at::set_num_threads(1);  // products this small only wait for each other
  DreamZeroPolicy::Parts parts;
  parts.dit = random_dit(spec.model, 3);
  auto features = FeatureEncoder::random(spec.model, 5);
  auto tokenizer = make_tokenizer(spec.model.text_encoder);
  EXPECT_TRUE(features && tokenizer);
  parts.features = std::move(*features);
  parts.tokenizer = std::move(*tokenizer);
  parts.device = std::move(device);
  return DreamZeroPolicy::make(spec, std::move(parts), options).value();
}

inline NdArray image_array(std::int64_t frames, std::int64_t height, std::int64_t width, unsigned seed) {
  std::mt19937 draw(seed);
  NdArray out{.dtype = "|u1", .shape = {height, width, 3}, .data = {}};
  if (frames > 0) out.shape.insert(out.shape.begin(), frames);
  out.data.resize(static_cast<std::size_t>(out.numel()));
  for (std::byte& b : out.data) b = static_cast<std::byte>(draw() % 256);
  return out;
}

template <class T>
NdArray vector_array(const std::vector<T>& values) {
  NdArray out{.dtype = sizeof(T) == 4 ? "<f4" : "<f8", .shape = {static_cast<std::int64_t>(values.size())}, .data = {}};
  out.data.resize(values.size() * sizeof(T));
  std::memcpy(out.data.data(), values.data(), out.data.size());
  return out;
}

/// frames 0: one frame as [H, W, 3].
inline Observation tiny_observation(const std::string& episode, std::int64_t frames, unsigned seed) {
  Observation o{.episode = episode, .prompt = "Pick up the cup", .images = {}, .state = {}};
  o.images["front"] = image_array(frames, 40, 48, seed);
  o.images["side"] = image_array(frames, 40, 48, seed + 1000);
  o.state["joints"] = vector_array<float>({0.25F + 0.01F * static_cast<float>(seed), -0.5F});
  o.state["gripper"] = vector_array<float>({0.75F});
  return o;
}

}  // namespace troupe::workers

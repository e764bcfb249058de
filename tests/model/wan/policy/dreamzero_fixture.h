#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/wan/batch_keys.h"
#include "model/wan/infer/denoise.h"
#include "model/wan/policy/dreamzero_net.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::testing {

/// What a test's job says: a transformer of two layers, latents of 4 x 6, three actions of three numbers out of five.
struct DreamZeroCase {
  ModelConfig model;
  WindowConfig window;
  PolicyConfig policy;
  AlgorithmConfig algorithm;
  PolicyShape shape;
};

/// `chunks`: blocks of a window.
inline DreamZeroCase dreamzero_case(bool image_to_video = false, std::int64_t chunks = 1) {
  const TinyShape tiny{.name = "policy", .blocks = chunks, .max_blocks = chunks, .image_to_video = image_to_video};
  DreamZeroCase c;
  c.model = tiny_config(tiny);
  c.model.codec.stride_hw = 16;
  c.model.target_height = 64;
  c.model.target_width = 96;
  c.model.image_encoder.image_size = 2 * c.model.image_encoder.patch_size;  // five tokens
  c.window.chunks = chunks;
  c.window.action_horizon = tiny.actions_per_block;
  c.algorithm.name = Algorithm::grpo;
  c.algorithm.policy_gradient.reward_level = "chunk";
  c.shape.state_dim = 4;
  c.shape.action_dim = 3;
  c.shape.chunk = tiny.actions_per_block;
  return c;
}

/// The same with adapters of rank 2.
inline DreamZeroCase adapted_case() {
  DreamZeroCase c = dreamzero_case(true);
  c.model.train_architecture = "lora";
  c.model.lora.rank = 2;
  c.model.lora.alpha = 4;
  return c;
}

/// Frozen parameters that a test gives.
class GivenTransformer final : public FrozenTransformer {
 public:
  explicit GivenTransformer(UnitViews views) : views_(std::move(views)) {}
  const UnitViews& views() const override { return views_; }

 private:
  const UnitViews views_;
};

/// Sees waves of the state in place of frames, and is told one text; actions are twice the normalised ones plus the
/// state's first number.
class WaveObserver final : public DreamZeroObserver {
 public:
  explicit WaveObserver(const DreamZeroCase& c) : case_(c) {}

  Batch encode(const Batch& observation) const override {
    namespace key = batch_keys;
    const auto& m = case_.model;
    auto seen = present(observation);
    seen[key::kClip] = wave(observation, 2, {5, m.image_encoder.dim});
    seen[key::kCleanLatents] = frames(observation, 3, m.dit.out_dim, 1);
    if (m.dit.concat_first_frame_latent) {
      const auto length = 1 + case_.window.chunks * m.latent_frames_per_block;
      seen[key::kFirstFrame] = frames(observation, 5, 4 + m.dit.out_dim, length);
    }
    return seen;
  }
  Batch encode_later(const Batch& observation) const override {
    const auto& m = case_.model;
    auto seen = present(observation);
    seen[batch_keys::kCleanLatents] = frames(observation, 6, m.dit.out_dim, m.latent_frames_per_block);
    return seen;
  }

  at::Tensor actions(const at::Tensor& normalised, const Batch& observation) const override {
    const auto& state = observation.at(rl_keys::kState);
    return (2 * normalised.narrow(2, 0, case_.shape.action_dim) + state.narrow(1, 0, 1).unsqueeze(2)).flatten(1);
  }

 private:
  static at::Tensor wave(const Batch& observation, std::uint64_t seed, std::vector<std::int64_t> shape) {
    const auto& state = observation.at(rl_keys::kState);
    const auto count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    shape.insert(shape.begin(), state.size(0));
    return state.matmul(seeded_noise(seed, {state.size(1), count})).sin().view(shape);
  }
  at::Tensor frames(const Batch& observation, std::uint64_t seed, std::int64_t channels, std::int64_t count) const {
    const auto& m = case_.model;
    return wave(observation, seed,
                {channels, count, m.target_height / m.codec.stride_hw, m.target_width / m.codec.stride_hw});
  }
  Batch present(const Batch& observation) const {
    const auto& m = case_.model;
    const auto rows = observation.at(rl_keys::kState).size(0);
    const auto text = seeded_noise(1, {1, 6, m.text_encoder.dim});
    return {{batch_keys::kContext, text.repeat({rows, 1, 1})},
            {batch_keys::kState, wave(observation, 4, {m.states_per_block, m.dit.max_state_dim})}};
  }

  const DreamZeroCase case_;
};

inline Result<std::shared_ptr<const PolicyNet>> make_dreamzero(const DreamZeroCase& c, DreamZeroActing acting = {}) {
  return DreamZeroNet::make(c.model, c.window, c.policy, c.algorithm, c.shape, std::make_shared<WaveObserver>(c),
                            std::move(acting));
}

/// A policy with weights, and what it did in some rows.
struct ActedDreamZero {
  std::shared_ptr<const PolicyNet> net;
  std::vector<ParamView> params;
  UnitViews views;
  Batch observation;
  ActResult result;
  /// as trajectories keep them
  Batch rows;
};

/// `spread` as start_parameters'.
inline ActedDreamZero act_dreamzero(const DreamZeroCase& c, std::int64_t rows, bool deterministic = false,
                                    double spread = 0.2, std::uint64_t seed = 2) {
  auto net = make_dreamzero(c);
  EXPECT_TRUE(net) << (net ? "" : net.error().to_string());
  ActedDreamZero acted{
      *net, start_parameters((*net)->units(), 11, spread), {}, draw_observation(c.shape, rows, seed), {}, {}};
  acted.views = by_name(acted.net->units(), acted.params);
  const auto keys = row_keys(rows, 100 * seed);
  const double level = c.policy.flow.noise_level;
  acted.result = acted.net->act(acted.views, {acted.observation, 9, keys, deterministic, level});
  acted.rows = stored_rows(acted.observation, acted.result, level);
  return acted;
}

/// The rows with what the learner adds: advantages, and old log-probabilities `off` away from those of the weights.
inline Batch learning_batch(const ActedDreamZero& acted, double off = 0, std::uint64_t seed = 3) {
  const auto generator = at::detail::createCPUGenerator(seed);
  const auto& logp = acted.result.logp;
  Batch batch = acted.rows;
  batch[rl_keys::kOldLogp] = logp + off * at::randn(logp.sizes(), generator, at::kFloat);
  batch[rl_keys::kAdvantage] = at::randn({logp.size(0), 1}, generator, at::kFloat);
  batch[rl_keys::kMask] = at::ones({logp.size(0), acted.result.extra.at("next").size(1)}, at::kBool);
  return batch;
}

}  // namespace troupe::testing

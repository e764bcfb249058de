#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/threads.h"
#include "model/loss/rl_keys.h"
#include "model/policy/actor_critic.h"
#include "model/policy/policy_net.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"
#include "model/shard/unit_tape.h"
#include "tests/support/tensor_checks.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// Parameters of a chain as an engine starts them, by unit; `spread` is added noise so that heads and log_std are not
/// special.
inline std::vector<ParamView> start_parameters(const std::vector<UnitSpec>& units, std::uint64_t seed,
                                               double spread = 0) {
  std::vector<ParamView> views;
  const auto generator = at::detail::createCPUGenerator(seed);
  for (const auto& unit : units) {
    const auto layout = make_flat_layout(unit.params);
    auto flat = at::zeros({layout.numel}, at::kFloat);
    fill_initial(unit, layout, seed, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
    if (spread > 0) flat += spread * at::randn({layout.numel}, generator, at::kFloat);
    views.push_back(views_of(layout, flat, /*leaves=*/true));
  }
  return views;
}

/// Gradient buffers like the parameters of trained units, filled with NaN so that a miss shows.
inline std::vector<ParamView> empty_gradients(const std::vector<UnitSpec>& units) {
  std::vector<ParamView> views;
  for (const auto& unit : units) {
    auto& view = views.emplace_back();
    if (!unit.trainable) continue;
    for (const auto& param : unit.params) view.set(param.name, at::full(param.shape, std::nan(""), at::kFloat));
  }
  return views;
}

inline UnitViews by_name(const std::vector<UnitSpec>& units, const std::vector<ParamView>& views) {
  UnitViews named;
  for (std::size_t u = 0; u < units.size(); ++u) named[units[u].name] = views[u];
  return named;
}

/// Loss, metrics and gradients through the engine's generic unit.
inline MicroResult run_tape(const Network& network, const std::vector<ParamView>& params, const Batch& batch,
                            double weight, const std::vector<ParamView>& gradients) {
  UnitTape tape(network, batch, weight, std::array{RecomputeLevel::full});
  const int units = static_cast<int>(network.units().size());
  for (int u = 0; u < units; ++u) tape.forward(u, params[static_cast<std::size_t>(u)]);
  const auto result = tape.result();
  for (int u = units - 1; u >= 0; --u)
    tape.backward(u, params[static_cast<std::size_t>(u)], gradients[static_cast<std::size_t>(u)]);
  return result;
}

/// What a test's job says.
struct PolicyCase {
  PolicyConfig policy;
  AlgorithmConfig algorithm;
  PolicyShape shape;
};

/// Continuous actions of six joints from 17 numbers, as in HalfCheetah.
inline PolicyCase continuous_case() {
  PolicyCase c;
  c.shape.state_dim = 17;
  c.shape.action_dim = 6;
  c.shape.action_low.assign(6, -1.0f);
  c.shape.action_high.assign(6, 1.0f);
  c.shape.max_episode_steps = 20;
  return c;
}

/// One of `choices` actions.
inline PolicyCase discrete_case(std::int64_t choices = 3) {
  PolicyCase c;
  c.shape.state_dim = 4;
  c.shape.choices = choices;
  c.shape.max_episode_steps = 20;
  return c;
}

/// One of five actions, some of which an observation does not allow; critics see two numbers that the actor does not.
inline PolicyCase masked_case() {
  auto c = discrete_case(5);
  c.shape.critic_dim = 2;
  c.shape.mask_dim = 5;
  c.shape.state_dim = 4 + c.shape.critic_dim + c.shape.mask_dim;
  return c;
}

inline std::shared_ptr<const PolicyNet> make_net(const PolicyCase& c) {
  auto net = make_actor_critic_net(c.policy, c.algorithm, c.shape);
  EXPECT_TRUE(net) << (net ? "" : net.error().to_string());
  return *net;
}

inline std::vector<std::uint64_t> row_keys(std::int64_t rows, std::uint64_t first = 100) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(rows));
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

/// Observations of any shape, drawn from `seed`.
inline Batch draw_observation(const PolicyShape& shape, std::int64_t rows, std::uint64_t seed) {
  const auto generator = at::detail::createCPUGenerator(seed);
  Batch batch;
  if (shape.state_dim > 0) batch[rl_keys::kState] = at::randn({rows, shape.state_dim}, generator, at::kFloat);
  if (shape.mask_dim > 0) {
    auto mask = batch[rl_keys::kState].narrow(1, shape.state_dim - shape.mask_dim, shape.mask_dim);
    mask.copy_(mask > 0);
    // rows that allow one action are among them, rows that allow none are not
    mask.select(1, rows % shape.mask_dim).fill_(1);
  }
  for (const auto& image : shape.images) {
    const std::vector<std::int64_t> sizes{rows, image.height, image.width, image.channels};
    batch[rl_keys::kImagePrefix + image.name] =
        image.is_depth ? at::rand(sizes, generator) : at::randint(0, 256, sizes, generator, at::kByte);
  }
  return batch;
}

/// Rows as trajectories keep them: what was observed, what was done, and what log-probabilities are found from.
inline Batch stored_rows(const Batch& observation, const ActResult& result, double noise_level) {
  Batch rows = observation;
  rows[rl_keys::kAction] = result.action;
  for (const auto& [name, tensor] : result.extra) rows[rl_keys::kExtraPrefix + name] = tensor;
  rows[rl_keys::kNoiseLevel] = at::scalar_tensor(noise_level, at::kDouble);
  return rows;
}

/// A base of fixtures: a policy with weights, and observations for it to act on.
class PolicyInUse {
 protected:
  static constexpr std::int64_t kRows = 6;
  static constexpr double kNoiseLevel = 0.5;

  void use(const PolicyCase& c) {
    const auto made = make_policy_net(c.policy, c.algorithm, c.shape);
    ASSERT_TRUE(made) << made.error().to_string();
    net_ = *made;
    params_ = start_parameters(net_->units(), 5, 0.2);
    observation_ = draw_observation(c.shape, kRows, 2);
  }
  UnitViews views() const { return by_name(net_->units(), params_); }
  ActResult act() const {
    const auto keys = row_keys(kRows);
    return net_->act(views(), {observation_, 9, keys, false, kNoiseLevel});
  }
  Batch stored(const ActResult& acted) const { return stored_rows(observation_, acted, kNoiseLevel); }

  std::shared_ptr<const PolicyNet> net_;
  std::vector<ParamView> params_;
  Batch observation_;
};

/// A minibatch around what the policy would do: some actions masked, ratios on both sides of the clip, values off
/// their targets.
inline Batch draw_minibatch(const PolicyNet& net, const std::vector<ParamView>& params, const PolicyShape& shape,
                            std::int64_t rows, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const auto generator = at::detail::createCPUGenerator(seed + 1);
  auto batch = draw_observation(shape, rows, seed);
  const auto keys = row_keys(rows, 1000 * seed);
  const auto acted = net.act(by_name(net.units(), params), {batch, seed, keys});
  const auto noise = [&](const at::Tensor& like) { return at::randn(like.sizes(), generator, at::kFloat); };
  batch[rl_keys::kAction] = acted.action;
  batch[rl_keys::kOldLogp] = acted.logp + 0.25 * noise(acted.logp);
  const std::int64_t cells = std::max<std::int64_t>(1, net.value_width());
  batch[rl_keys::kAdvantage] = at::randn({rows, cells}, generator, at::kFloat);
  batch[rl_keys::kMask] = at::rand({rows, shape.chunk}, generator, at::kFloat) < 0.8;
  batch[rl_keys::kValidSteps] = at::randint(1, 20, {rows, 1}, generator, at::kFloat);
  batch[rl_keys::kReferenceLogp] = acted.logp + 0.1 * noise(acted.logp);
  batch[rl_keys::kVersion] = at::randint(3, 7, {rows, 1}, generator, at::kLong);
  batch[rl_keys::kTrainedVersion] = at::scalar_tensor(7, at::kLong);
  if (net.value_width() > 0) {
    batch[rl_keys::kOldValue] = acted.value + 0.3 * noise(acted.value);
    batch[rl_keys::kReturn] = acted.value + 2 * noise(acted.value);
  }
  return batch;
}

/// The loss and every bit of the gradients of a phase's manual backward are those of one thread, however many stand by.
inline void expect_same_bits_on_any_threads(const PolicyNet& net, const std::string& phase,
                                            const std::vector<ParamView>& params, const Batch& batch) {
  const auto network = net.objective(phase);
  const auto wanted = empty_gradients(net.units());
  const double loss = network->manual_backward()->run(params, batch, 1.0, wanted).loss;
  for (const int threads : {1, 2, 3, 7}) {
    const auto gradients = empty_gradients(net.units());
    kernels::with_own_team(
        threads, [&] { EXPECT_EQ(network->manual_backward()->run(params, batch, 1.0, gradients).loss, loss); });
    for (std::size_t unit = 0; unit < wanted.size(); ++unit) {
      for (const auto& [name, gradient] : wanted[unit].tensors())
        EXPECT_TRUE(gradients[unit][name].equal(gradient)) << name << ", " << threads << " threads";
    }
  }
}

/// Adam over the parameters of one unit.
class SmallAdam {
 public:
  explicit SmallAdam(double lr) : lr_(lr) {}
  void step(const ParamView& params, const ParamView& gradients) {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (const auto& [name, gradient] : gradients.tensors()) {
      auto& [m, v] = moments_.try_emplace(name, at::zeros_like(gradient), at::zeros_like(gradient)).first->second;
      m.mul_(0.9).add_(gradient, 0.1);
      v.mul_(0.99).addcmul_(gradient, gradient, 0.01);
      auto value = params[name];
      value.sub_(lr_ * (m / (1 - std::pow(0.9, steps_))) / ((v / (1 - std::pow(0.99, steps_))).sqrt() + 1e-8));
    }
  }

 private:
  const double lr_;
  int steps_ = 0;
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments_;
};

}  // namespace troupe::testing

// Log-probabilities of actions that were drawn and not executed have no part in the loss: chunks of 24 actions of which
// 8 are executed, and a chunk whose episode ended at its third action.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <string>
#include <vector>

#include "model/policy/policy_loss_gradient.h"
#include "model/policy/ppo_loss_op.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kRows = 6, kChunk = 24, kExecuted = 8, kWidth = 2;

struct ExecutedCase {
  Algorithm algorithm = Algorithm::ppo;
  bool reward_per_action = false;
  Granularity level = Granularity::chunk;
  /// Else the third row's episode ends at its third action, and all other rows execute the whole chunk.
  bool has_exec_steps = true;
};
std::string name_of(const ExecutedCase& c) {
  return std::string(enum_name(c.algorithm)) + "_" + std::string(enum_name(c.level)) +
         (c.reward_per_action ? "_action_rewards" : "") + (c.has_exec_steps ? "_exec_steps" : "_ended");
}
void PrintTo(const ExecutedCase& c, std::ostream* out) { *out << name_of(c); }

std::vector<ExecutedCase> executed_cases(bool has_exec_steps) {
  std::vector<ExecutedCase> list;
  for (const auto algorithm : {Algorithm::ppo, Algorithm::grpo, Algorithm::decoupled_ppo, Algorithm::vtrace}) {
    for (const auto level : {Granularity::chunk, Granularity::action, Granularity::token}) {
      list.push_back({algorithm, false, level, has_exec_steps});
      const bool has_action_rewards = level != Granularity::chunk && algorithm != Algorithm::vtrace;
      if (has_action_rewards) list.push_back({algorithm, true, level, has_exec_steps});
    }
  }
  return list;
}

struct Found {
  double loss = 0;
  std::map<std::string, double> metrics;
  /// Of log-probabilities, entropies and, with a critic, values.
  std::vector<at::Tensor> gradients;
};

class ExecutedActionsTest : public ::testing::TestWithParam<ExecutedCase> {
 protected:
  PolicyGradientOptions options() const {
    AlgorithmConfig algorithm;
    algorithm.name = GetParam().algorithm;
    auto& c = algorithm.policy_gradient;
    c.reward_level = GetParam().reward_per_action ? "action" : "chunk";
    c.logprob_level = c.entropy_level = GetParam().level;
    c.entropy_bonus = 0.02;
    if (algorithm.name == Algorithm::grpo) c.kl_beta = 0.1;
    return make_policy_gradient_options(algorithm, kChunk, 100);
  }

  /// `shift` is added to every number of an action that was not executed.
  PolicyGradientInputs inputs(float shift = 0) const {
    at::manual_seed(11);
    const auto cells = GetParam().reward_per_action ? kChunk : 1;
    const auto noise = [](double size, std::int64_t width) { return size * at::randn({kRows, width}); };
    PolicyGradientInputs in;
    in.mask = at::ones({kRows, kChunk}, at::kBool);
    if (GetParam().has_exec_steps) {
      in.mask.narrow(1, kExecuted, kChunk - kExecuted).fill_(false);
    } else {
      in.mask[2].narrow(0, 3, kChunk - 3).fill_(false);
    }
    const auto waste = in.mask.logical_not().repeat_interleave(kWidth, 1).to(at::kFloat) * shift;
    in.logp = noise(0.3, kChunk * kWidth);
    in.old_logp = in.logp + noise(0.05, kChunk * kWidth) + waste;
    in.logp = in.logp + 2 * waste;
    in.entropy = noise(1, kChunk * kWidth) + waste;
    in.advantage = noise(1, cells);
    if (GetParam().algorithm == Algorithm::grpo) {
      in.reference_logp = in.old_logp + noise(0.05, kChunk * kWidth) + waste;
    } else {
      in.value = noise(1, cells);
      in.old_value = in.value + noise(0.3, cells);
      in.returns = noise(1, cells);
    }
    in.version = at::full({kRows, 1}, 5, at::kLong);
    in.trained_version = at::scalar_tensor(7, at::kLong);
    return in;
  }

  Found by_explicit_backward(const PolicyGradientInputs& in) const {
    PolicyLossGradient loss(options(), kRows, kChunk * kWidth, in.value.defined() ? in.value.size(1) : 0);
    loss.begin(in, 1.0);
    bool is_whole = loss.actor(in.logp, in.entropy);
    if (in.value.defined()) is_whole = loss.critic(in.value) && is_whole;
    const auto result = is_whole ? *loss.result() : loss.by_autograd();
    Found found{result.loss, result.metrics, {loss.gradients().logp, loss.gradients().entropy}};
    if (in.value.defined()) found.gradients.push_back(loss.gradients().value);
    return found;
  }
  Found by_autograd(PolicyGradientInputs in, const PolicyGradientOptions& options) const {
    std::vector<at::Tensor> leaves;
    for (auto* x : {&in.logp, &in.entropy, &in.value}) {
      if (x->defined()) leaves.push_back(*x = x->detach().requires_grad_(true));
    }
    const auto got = policy_gradient_loss(in, options);
    Found found{got.loss.item<double>(), {}, torch::autograd::grad({got.loss}, leaves)};
    for (const auto& [name, x] : got.metrics) found.metrics[name] = x.item<double>();
    return found;
  }
  Found by_autograd(const PolicyGradientInputs& in) const { return by_autograd(in, options()); }
  /// The unit that sharded learners run.
  Found by_op(const PolicyGradientInputs& in) const {
    std::vector<at::Tensor> parts{in.logp, in.entropy};
    if (in.value.defined()) parts.push_back(in.value);
    const auto stream = at::cat(parts, 1).requires_grad_(true);
    const auto got = ppo_loss_op(stream, kChunk * kWidth, in.value.defined() ? in.value.size(1) : 0, in, options());
    Found found{got.loss.item<double>(), {}, torch::autograd::grad({got.loss}, {stream})};
    for (const auto& [name, x] : got.metrics) found.metrics[name] = x.item<double>();
    return found;
  }

  static void expect_same_bits(const Found& got, const Found& want) {
    EXPECT_EQ(got.loss, want.loss);
    EXPECT_EQ(got.metrics, want.metrics);
    ASSERT_EQ(got.gradients.size(), want.gradients.size());
    for (std::size_t i = 0; i < want.gradients.size(); ++i)
      EXPECT_TRUE(got.gradients[i].equal(want.gradients[i])) << "gradient " << i;
  }
};

TEST_P(ExecutedActionsTest, OthersChangeNoBitOfTheExplicitBackward) {
  expect_same_bits(by_explicit_backward(inputs(1)), by_explicit_backward(inputs()));
}

TEST_P(ExecutedActionsTest, OthersChangeNoBitOfAutograd) {
  expect_same_bits(by_autograd(inputs(1)), by_autograd(inputs()));
}

TEST_P(ExecutedActionsTest, OthersChangeNoBitOfTheGenericUnit) { expect_same_bits(by_op(inputs(1)), by_op(inputs())); }

TEST_P(ExecutedActionsTest, OthersMayBeNoNumbersAtAll) {
  auto in = inputs();
  const auto waste = in.mask.logical_not().repeat_interleave(kWidth, 1);
  for (auto* x : {&in.logp, &in.old_logp, &in.entropy}) *x = x->masked_fill(waste, std::nan(""));
  expect_same_bits(by_autograd(in), by_autograd(inputs()));
}

TEST_P(ExecutedActionsTest, OthersHaveNoGradient) {
  const auto in = inputs();
  const auto waste = in.mask.logical_not().repeat_interleave(kWidth, 1);
  for (const auto& found : {by_explicit_backward(in), by_autograd(in)}) {
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(found.gradients[i].masked_select(waste).abs().sum().item<double>(), 0.0);
    EXPECT_GT(found.gradients[0].abs().sum().item<double>(), 0.0);
  }
}

TEST_P(ExecutedActionsTest, ExplicitBackwardAndAutogradAgree) {
  const auto got = by_explicit_backward(inputs()), want = by_autograd(inputs());
  EXPECT_NEAR(got.loss, want.loss, 2e-6);
  for (const auto& [name, value] : want.metrics) EXPECT_NEAR(got.metrics.at(name), value, 2e-6) << name;
  for (std::size_t i = 0; i < want.gradients.size(); ++i)
    EXPECT_TRUE(at::allclose(got.gradients[i], want.gradients[i], 1e-5, 1e-6)) << "gradient " << i;
}

TEST_P(ExecutedActionsTest, ParityCountsTheWholeChunkUnderChunkRewardsAsRlinfDoes) {
  auto rlinf = options();
  rlinf.parity = true;
  const bool is_masked = by_autograd(inputs(1), rlinf).metrics == by_autograd(inputs(), rlinf).metrics;
  EXPECT_EQ(is_masked, GetParam().reward_per_action);
}

class ExecStepsTest : public ExecutedActionsTest {};

TEST_P(ExecStepsTest, TheLossIsThatOfAChunkOfTheExecutedActions) {
  auto in = inputs();
  for (auto* x : {&in.logp, &in.old_logp, &in.reference_logp, &in.entropy}) {
    if (x->defined()) *x = x->narrow(1, 0, kExecuted * kWidth);
  }
  in.mask = in.mask.narrow(1, 0, kExecuted);
  for (auto* x : {&in.advantage, &in.value, &in.old_value, &in.returns}) {
    if (x->defined() && x->size(1) == kChunk) *x = x->narrow(1, 0, kExecuted);
  }
  auto short_options = options();
  short_options.chunk = kExecuted;
  const auto want = by_autograd(in, short_options), got = by_autograd(inputs());
  EXPECT_NEAR(got.loss, want.loss, 2e-6);
  for (const auto& [name, value] : want.metrics) EXPECT_NEAR(got.metrics.at(name), value, 2e-6) << name;
  EXPECT_TRUE(at::allclose(got.gradients[0].narrow(1, 0, kExecuted * kWidth), want.gradients[0], 1e-5, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(EndedAtItsThird, ExecutedActionsTest, ::testing::ValuesIn(executed_cases(false)),
                         [](const auto& param_info) { return name_of(param_info.param); });
INSTANTIATE_TEST_SUITE_P(EightOfTwentyFour, ExecutedActionsTest, ::testing::ValuesIn(executed_cases(true)),
                         [](const auto& param_info) { return name_of(param_info.param); });
INSTANTIATE_TEST_SUITE_P(EightOfTwentyFour, ExecStepsTest, ::testing::ValuesIn(executed_cases(true)),
                         [](const auto& param_info) { return name_of(param_info.param); });

}  // namespace
}  // namespace troupe::model

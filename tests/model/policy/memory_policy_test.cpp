// Policies that remember: what they said step by step while acting is what the learner finds over the whole sequence.
#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

using testing::PolicyCase;

constexpr std::int64_t kSteps = 7, kSequences = 4;

PolicyCase with_memory(PolicyCase c) {
  c.policy.memory = PolicyMemory::gru;
  c.policy.memory_width = 5;
  c.policy.hidden = {16, 8};
  c.algorithm.policy_gradient.reward_level = "chunk";
  return c;
}

PolicyCase remembering_images_case() {
  auto c = testing::discrete_case();
  c.policy.kind = PolicyKind::cnn;
  c.policy.cnn_channels = {4, 4, 4};
  c.shape.images = {{.name = "rgb", .height = 36, .width = 36}};
  return c;
}

/// Sequences that a policy acted in step by step, and what it said: rows t * kSequences + s.
struct ActedSequences {
  explicit ActedSequences(const PolicyCase& c) : net(testing::make_net(c)) {
    params = testing::start_parameters(net->units(), 5, 0.2);
    views = testing::by_name(net->units(), params);
    const auto generator = at::detail::createCPUGenerator(4);
    batch = testing::draw_observation(c.shape, kSteps * kSequences, 8);
    std::map<std::string, at::Tensor> memory;
    for (const auto& field : net->memory()) {
      memory[field.name] = 0.5 * at::randn({kSequences, field.width}, generator, at::kFloat);
      batch[rl_keys::kMemoryPrefix + field.name] = memory[field.name];
    }
    auto begins = at::zeros({kSteps * kSequences, 1}, at::kBool);
    begins[2 * kSequences + 1] = begins[5 * kSequences + 1] = begins[3 * kSequences] = true;
    batch[rl_keys::kBegins] = begins;
    std::vector<at::Tensor> actions, logps, values;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      Batch now;
      for (const auto& [key, tensor] : batch) {
        if (tensor.size(0) == kSteps * kSequences) now[key] = tensor.narrow(0, t * kSequences, kSequences);
      }
      const auto goes_on = now.extract(rl_keys::kBegins).mapped().logical_not().to(at::kFloat);
      for (auto& [name, tensor] : memory) now[rl_keys::kMemoryPrefix + name] = tensor * goes_on;
      auto result = net->act(views, {now, 6, testing::row_keys(kSequences, 100 + 10 * static_cast<std::uint64_t>(t))});
      actions.push_back(result.action);
      logps.push_back(result.logp);
      values.push_back(result.value);
      memory = std::move(result.memory);
    }
    batch[rl_keys::kAction] = at::cat(actions);
    logp = at::cat(logps);
    value = at::cat(values);
  }

  std::shared_ptr<const PolicyNet> net;
  std::vector<ParamView> params;
  UnitViews views;
  Batch batch;
  at::Tensor logp, value;
};

class MemoryPolicyTest : public ::testing::TestWithParam<const char*> {
 protected:
  static PolicyCase wanted() {
    const std::string name = GetParam();
    return with_memory(name == "continuous" ? testing::continuous_case()
                       : name == "masked"   ? testing::masked_case()
                       : name == "images"   ? remembering_images_case()
                                            : testing::discrete_case());
  }
};

TEST_P(MemoryPolicyTest, TheLearnerFindsTheLogProbabilitiesAndValuesOfActing) {
  const ActedSequences acted(wanted());
  testing::expect_near(acted.net->logp(acted.views, acted.batch), acted.logp, 1e-5, "log-probabilities");
  testing::expect_near(acted.net->value(acted.views, acted.batch), acted.value, 1e-5, "values");
}

TEST_P(MemoryPolicyTest, WhatIsRememberedDecidesAndIsForgottenWhereAnEpisodeBegins) {
  ActedSequences acted(wanted());
  auto& memory = acted.batch.at(std::string(rl_keys::kMemoryPrefix) + "actor");
  memory = memory + 1;
  const auto moved = (acted.net->logp(acted.views, acted.batch) - acted.logp).abs().sum(1).view({kSteps, kSequences});
  EXPECT_GT(moved[0].max().item<float>(), 1e-4f);
  EXPECT_LT(moved.select(1, 1).narrow(0, 2, kSteps - 2).max().item<float>(), 1e-5f);
  EXPECT_LT(moved.select(1, 0).narrow(0, 3, kSteps - 3).max().item<float>(), 1e-5f);
}

TEST_P(MemoryPolicyTest, EveryParameterIsTrained) {
  const ActedSequences acted(wanted());
  auto batch = acted.batch;
  const std::int64_t rows = kSteps * kSequences;
  batch[rl_keys::kOldLogp] = acted.logp;
  batch[rl_keys::kAdvantage] = at::randn({rows, 1}, at::detail::createCPUGenerator(2), at::kFloat);
  batch[rl_keys::kMask] = at::ones({rows, 1}, at::kBool);
  batch[rl_keys::kOldValue] = acted.value;
  batch[rl_keys::kReturn] = acted.value + 1;
  batch[rl_keys::kVersion] = at::zeros({rows, 1}, at::kLong);
  batch[rl_keys::kTrainedVersion] = at::scalar_tensor(1, at::kLong);
  const auto objective = acted.net->objective("policy");
  EXPECT_EQ(objective->manual_backward(), nullptr);
  const auto gradients = testing::empty_gradients(acted.net->units());
  const auto result = testing::run_tape(*objective, acted.params, batch, 1.0, gradients);
  EXPECT_NEAR(result.metrics.at("actor/ratio"), 1, 1e-5);
  for (const auto& unit : gradients) {
    for (const auto& [name, gradient] : unit.tensors()) EXPECT_GT(gradient.abs().max().item<float>(), 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MemoryPolicyTest, ::testing::Values("discrete", "continuous", "masked", "images"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(MemoryFieldsTest, NamesWhatItRemembers) {
  auto c = with_memory(testing::discrete_case());
  const auto named = [&] {
    std::vector<std::pair<std::string, std::int64_t>> all;
    const auto net = testing::make_net(c);
    for (const auto& field : net->memory()) all.emplace_back(field.name, field.width);
    return all;
  };
  EXPECT_EQ(named(), (std::vector<std::pair<std::string, std::int64_t>>{{"actor", 5}, {"critic", 5}}));
  c.algorithm.name = Algorithm::grpo;
  EXPECT_EQ(named(), (std::vector<std::pair<std::string, std::int64_t>>{{"actor", 5}})) << "there is no critic";
  c.policy.memory = PolicyMemory::none;
  EXPECT_TRUE(named().empty());
}

}  // namespace
}  // namespace troupe::model

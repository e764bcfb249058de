// Adapters on a DreamZero that acts: what travels, what stays frozen, and what both make of an observation together.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "model/wan/lora.h"
#include "tests/model/wan/policy/dreamzero_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

/// A policy whose every parameter was trained, and adapters on the same parameters.
class DreamZeroAdaptersTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 12;

  /// Parameters that adapters leave as they are, in a dtype.
  UnitViews frozen(at::ScalarType dtype = at::kFloat) const {
    UnitViews views;
    for (const UnitSpec& unit : chain_) {
      for (const ParamSpec& param : unit.params)
        views[unit.name].set(param.name, whole_.views.at(unit.name)[param.name].detach().to(dtype).clone());
    }
    return views;
  }
  std::shared_ptr<const PolicyNet> on(std::shared_ptr<const FrozenTransformer> frozen) const {
    return testing::make_dreamzero(testing::adapted_case(), {.frozen = std::move(frozen)}).value();
  }
  std::shared_ptr<const PolicyNet> on(UnitViews frozen) const {
    return on(std::make_shared<const testing::GivenTransformer>(std::move(frozen)));
  }
  /// What acts: modules that are trained whole as they are in the whole policy; B is normal times `spread`.
  UnitViews acting(double spread = 0) const {
    const auto generator = at::detail::createCPUGenerator(4);
    ParamView view = testing::start_parameters({state_units(chain_).back()}, 7).front();
    for (const UnitSpec& unit : chain_) {
      for (const ParamSpec& param : unit.replicated) {
        const at::Tensor fresh = view[param.name].detach();
        if (param.name.ends_with(kLoraB))
          view.set(param.name, spread * at::randn(fresh.sizes(), generator, at::kFloat));
        if (whole_.views.at(unit.name).contains(param.name))
          view.set(param.name, whole_.views.at(unit.name)[param.name].detach());
      }
    }
    return {{kReplicatedUnit, view}};
  }
  ActResult act(const PolicyNet& net, const UnitViews& views) const {
    return net.act(views, {whole_.observation, 9, testing::row_keys(kRows, 200), false, level_});
  }
  Batch rows(const ActResult& result) const { return testing::stored_rows(whole_.observation, result, level_); }

  const std::vector<UnitSpec> chain_ = training_units(testing::adapted_case().model);
  const double level_ = testing::adapted_case().policy.flow.noise_level;
  const ActedDreamZero whole_ = testing::act_dreamzero(testing::dreamzero_case(true), kRows);
};

TEST_F(DreamZeroAdaptersTest, NewAdaptersChangeNothing) {
  const auto net = on(frozen());
  const ActResult result = act(*net, acting());
  testing::expect_near(result.action, whole_.result.action, 1e-6, "actions");
  testing::expect_near(result.logp, whole_.result.logp, 1e-5, "log-probabilities of the call");
  testing::expect_near(net->logp(acting(), whole_.rows), whole_.net->logp(whole_.views, whole_.rows), 1e-5,
                       "log-probabilities of the rows");
}

TEST_F(DreamZeroAdaptersTest, WhatIsTrainedActsAndNothingElseTravels) {
  const auto net = on(frozen());
  EXPECT_THAT(net->acting_units(), ElementsAre(kReplicatedUnit));
  const std::vector<UnitSpec> units = state_units(net->units());
  EXPECT_EQ(units.back().group, "actor");
  EXPECT_TRUE(units.back().trainable);
  for (const UnitSpec& unit : net->units()) EXPECT_FALSE(unit.trainable) << unit.name;
  const auto is_apart = [](const ParamSpec& param) {
    return param.name.find("lora_") != std::string::npos || param.name.starts_with("state_encoder.") ||
           param.name.starts_with("action_encoder.") || param.name.starts_with("action_decoder.");
  };
  for (const ParamSpec& param : units.back().params) EXPECT_TRUE(is_apart(param)) << param.name;
}

TEST_F(DreamZeroAdaptersTest, ChangedAdaptersActAsWeightsThatTheyAreFoldedInto) {
  const auto base = std::make_shared<const testing::GivenTransformer>(frozen());
  const auto net = on(base);
  const UnitViews moved = acting(0.3);
  const ActResult result = act(*net, moved);
  EXPECT_GT(testing::max_difference(result.action, whole_.result.action), 1e-3);
  const at::Tensor logp = net->logp(moved, whole_.rows);
  EXPECT_GT(testing::max_difference(logp, whole_.net->logp(whole_.views, whole_.rows)), 1e-3);
  testing::expect_near(net->logp(moved, rows(result)), result.logp, 1e-3, "the same weights judge as they act");

  UnitViews folded;
  const ParamView& adapters = moved.at(kReplicatedUnit);
  for (const UnitSpec& unit : whole_.net->units()) {
    for (const auto& [name, tensor] : whole_.views.at(unit.name).tensors()) {
      at::Tensor value = tensor.detach();
      const std::string module = name.substr(0, name.rfind(".weight"));
      if (adapters.contains(module + std::string(kLoraA)))
        value = value + 2.0 * adapters[module + std::string(kLoraB)].matmul(adapters[module + std::string(kLoraA)]);
      folded[unit.name].set(name, value);
    }
  }
  testing::expect_near(act(*whole_.net, folded).action, result.action, 1e-3, "actions");
  testing::expect_near(whole_.net->logp(folded, whole_.rows), logp, 1e-3, "log-probabilities");

  const UnitViews before = frozen();
  for (const auto& [unit, view] : base->views()) {
    for (const auto& [name, tensor] : view.tensors()) EXPECT_TRUE(at::equal(tensor, before.at(unit)[name])) << name;
  }
}

TEST_F(DreamZeroAdaptersTest, AFrozenTransformerInBf16AnswersInF32) {
  const auto net = on(frozen(at::kBFloat16));
  const ActResult result = act(*net, acting(0.3));
  EXPECT_EQ(result.action.scalar_type(), at::kFloat);
  EXPECT_TRUE(result.action.isfinite().all().item<bool>());
  const at::Tensor logp = net->logp(acting(0.3), rows(result));
  EXPECT_EQ(logp.scalar_type(), at::kFloat);
  EXPECT_TRUE(logp.isfinite().all().item<bool>());
  EXPECT_GT(testing::max_difference(result.action, act(*on(frozen()), acting(0.3)).action), 0.0);
}

TEST_F(DreamZeroAdaptersTest, APolicyForAPlanCannotAct) {
  const auto net = on(std::shared_ptr<const FrozenTransformer>());
  EXPECT_FALSE(net->units().empty());
  EXPECT_THROW((void)act(*net, acting()), c10::Error);
}

TEST_F(DreamZeroAdaptersTest, AMissingParameterIsNamed) {
  UnitViews lacking = frozen();
  lacking.erase("head");
  EXPECT_THROW((void)act(*on(std::move(lacking)), acting()), c10::Error);
}

}  // namespace
}  // namespace troupe::model

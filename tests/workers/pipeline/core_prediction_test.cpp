// What is predicted of a step on cores is the sum of its kernels at the rates that it is given.
#include "workers/pipeline/core_prediction.h"

#include <gmock/gmock.h>

#include "configs/loader.h"
#include "model/step/step_builder.h"
#include "model/wan/model_cost.h"
#include "placement/planner.h"
#include "placement/pretend.h"
#include "workers/pipeline/core_timing.h"
#include "workers/pipeline/model_cost.h"

namespace troupe::workers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Every call takes a second and every byte, multiplication and so on another `each`.
CoreRates round_rates(double each, int threads = 2) {
  CoreRates rates{.threads = threads, .products = {1e9, 2e9}};
  for (auto& dtype : rates.coefficients) dtype.fill({1, each, 0, 0});
  return rates;
}

struct Planned {
  JobConfig job;
  ModelCost cost;
  Plan plan;
};

Planned plan_tiny(const std::vector<std::string>& overrides, const std::string& cluster = "cpu2-16G") {
  const LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", overrides);
  EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
  Planned planned{.job = loaded.config->job, .cost = {}, .plan = {}};
  planned.cost = model_cost(planned.job, {}).value();
  auto outcome = make_plan(*pretend_cluster(cluster), planned.job, planned.cost);
  EXPECT_TRUE(std::holds_alternative<Plan>(outcome));
  planned.plan = std::get<Plan>(std::move(outcome));
  return planned;
}

CorePrediction predict(const Planned& planned, const CoreRates& rates) {
  return predict_on_cores(planned.job, planned.cost, planned.plan, rates).value();
}

/// Two units of 4096 elements on two ranks.
StepShape two_units() {
  StepShape shape{.world = 2, .units = {}, .chain = 2, .param_bytes = 2, .param_slots = 2, .grad_slots = 1};
  for (const char* name : {"a", "b"}) shape.units.push_back({.name = name, .padded = 4096});
  return shape;
}

CoreStep two_unit_kernels() {
  const KernelWork product{.family = KernelFamily::product_nt, .m = 2, .n = 3, .k = 5};
  const KernelWork attention{.family = KernelFamily::attention, .m = 2, .n = 2, .k = 2, .heads = 4};
  const KernelWork norm{.family = KernelFamily::norm, .bytes = 100};
  return {.units = {{{norm}, {norm, norm}}, {{product}, {product, attention}}}, .threads = 2};
}

TEST(CoreTimingTest, AStepOfKnownKernelsTakesTheSumByHand) {
  const ArenaPlan plan(two_units());
  StepBuilder builder(plan, StepState::empty(plan.shape()));
  builder.micro_batch({true, true}, Differentiation::units);
  builder.vote();
  builder.update({true, true});
  const CoreStep step = two_unit_kernels();
  // a call takes a second, a byte or a multiplication a thousandth
  const CoreRates rates = round_rates(1e-3);
  const StepTiming timing = time_step(
      builder.operations(), [&](const Op& op) { return seconds_on_cores(op, plan, step, rates); },
      StreamSharing::in_turn);
  const double norm = 1 + 0.1, product = 1 + 0.03, attention = 2 * (1 + 0.008);
  // bf16 units of 8192 bytes, half of which came from the other rank; gradients of 16384
  const double gather = 1 + 4.096, exchange = 1 + 8.192, sum = 1 + 2048 * 4 * 3 * 1e-3;
  const double square = 1 + 8.192, agree = 2 * 1.0 + 1, clip = 1;
  const double update = 1 + 2048 * 28 * 1e-3 + 1 + 2048 * 6 * 1e-3;
  const double input = 1;
  EXPECT_NEAR(timing.seconds,
              input + 2 * gather + 3 * norm + 2 * product + attention + 2 * (exchange + sum) + 2 * square + agree +
                  clip + 2 * update,
              1e-9);
  EXPECT_NEAR(timing.products, 2 * product, 1e-9);
  EXPECT_NEAR(timing.attention, attention, 1e-9);
  EXPECT_EQ(timing.critical_path.size(), builder.operations().size()) << "all take turns";
}

TEST(CoreTimingTest, EveryKindOfOperationHasATime) {
  const ArenaPlan plan(two_units());
  const CoreStep step = two_unit_kernels();
  for (std::size_t kind = 0; kind < enum_names(OpKind{}).size(); ++kind) {
    Op op{.kind = static_cast<OpKind>(kind), .unit = 0, .micro = 0, .accesses = {{plan.parameters(0), true}}};
    EXPECT_GT(seconds_on_cores(op, plan, step, round_rates(1e-3)).sum(), 0) << enum_name(op.kind);
  }
}

TEST(CorePredictionTest, ProductsAreThoseThatTheModelsCostCounts) {
  const Planned planned = plan_tiny({"activation_checkpoint.mode=none", "training.micro_batch_size=2",
                                     "training.global_batch_size=2", "cluster.component_placement.learner=0"});
  const auto units =
      unit_kernels(planned.job.model, planned.job.data.window, at::kFloat, 2, std::vector{RecomputeLevel::none});
  const DitCost cost = dit_cost(planned.job.model, planned.job.data.window, 4);
  ASSERT_EQ(units.size(), cost.units.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    double forward = 0, backward = 0;
    for (const KernelWork& work : units[u].forward) forward += work.product_flops();
    for (const KernelWork& work : units[u].backward) backward += work.product_flops();
    EXPECT_NEAR(forward / (2 * cost.units[u].executed_forward_flops), 1, 0.01) << cost.units[u].name;
    // inputs of the prologue get no gradient
    EXPECT_GT(backward, (u == 0 ? 1 : 1.9) * forward) << cost.units[u].name;
    EXPECT_LT(backward, 2.5 * forward) << cost.units[u].name;
  }
}

TEST(CorePredictionTest, WhatRunsAgainTakesLonger) {
  const auto seconds = [](const std::string& level) {
    return predict(plan_tiny({"activation_checkpoint.mode=" + level}), round_rates(1e-9)).timing;
  };
  const StepTiming none = seconds("none"), cheap = seconds("cheap"), attention = seconds("attention"),
                   full = seconds("full");
  EXPECT_LT(none.seconds, cheap.seconds);
  EXPECT_LT(cheap.seconds, attention.seconds);
  EXPECT_LT(attention.seconds, full.seconds);
  EXPECT_NEAR(cheap.attention, attention.attention, 1e-9);
  EXPECT_LT(attention.attention, full.attention);
}

TEST(CorePredictionTest, LinesSayPredictedAndNeverMfu) {
  const CorePrediction predicted = predict(plan_tiny({}), round_rates(1e-9));
  EXPECT_GT(predicted.samples_per_second, 0);
  EXPECT_THAT(to_text(predicted), AllOf(HasSubstr("predicted"), HasSubstr("s a step"), HasSubstr("samples/s"),
                                        HasSubstr("product rate share"), Not(HasSubstr("FU"))));
  EXPECT_DOUBLE_EQ(predicted.product_share(2), predicted.product_flops / 2 / 1e9) << "f32";
  const CorePrediction native =
      predict(plan_tiny({"precision.param=bf16", "precision.products=native"}), round_rates(1e-9));
  EXPECT_DOUBLE_EQ(native.product_rate, 2e9);
  const CorePrediction widened =
      predict(plan_tiny({"precision.param=bf16", "precision.products=widened"}), round_rates(1e-9));
  EXPECT_DOUBLE_EQ(widened.product_rate, 1e9) << "multiplied in f32";
}

TEST(CorePredictionTest, WithoutRatesNothingIsSaidButWhy) {
  const Planned planned = plan_tiny({});
  ASSERT_TRUE(steps_on_cores(planned.job, planned.cost, planned.plan));
  const auto nothing = predict_on_cores(planned.job, planned.cost, planned.plan, std::nullopt);
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message(), HasSubstr("not measured"));

  const Planned ranks = plan_tiny({"cluster.component_placement.learner=0:0-1"});
  CoreRates deaf = round_rates(1e-9);
  for (const auto family : {KernelFamily::thread_transfer, KernelFamily::gloo_transfer})
    deaf.coefficients[0][static_cast<std::size_t>(family)] = {};
  const auto silent = predict_on_cores(ranks.job, ranks.cost, ranks.plan, deaf);
  ASSERT_FALSE(silent);
  EXPECT_THAT(silent.error().message(), HasSubstr("is not measured"));
}

}  // namespace
}  // namespace troupe::workers

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

/// Another grouping of the same f32 sums, compounded over the steps.
constexpr double kGroupingTolerance = 1e-5;

void expect_close(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], kGroupingTolerance * std::abs(want[i])) << "step " << i;
}

TEST(EngineParityTest, OneRankTrainsLikeAPlainAutogradModule) {
  const TrainingRun run{.micro_batches = 2, .steps = 8};
  const auto result = train(run);
  const ChainNetwork network;
  PlainChain plain(network, 11);
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments;
  for (const auto& [name, p] : plain.parameters()) moments[name] = {at::zeros_like(p), at::zeros_like(p)};
  std::vector<double> losses, norms;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    plain.zero_gradients();
    double loss = 0, squares = 0;
    for (std::int64_t j = 0; j < 2; ++j) loss += plain.accumulate(chain_batch(step * 2 + j), 0.5) * 0.5;
    for (const auto& [name, g] : plain.gradients()) squares += g.to(at::kDouble).square().sum().item<double>();
    losses.push_back(loss);
    norms.push_back(std::sqrt(squares));
    const double clip = std::min(1.0, run.options.clip_grad_norm / (norms.back() + 1e-6));
    const at::NoGradGuard no_grad;
    for (const auto& [name, p] : plain.parameters()) {
      auto& [m, v] = moments[name];
      const auto step_count = at::full({}, static_cast<double>(step + 1));
      at::_fused_adamw_({p.detach()}, {plain.gradients().at(name) * clip}, {m}, {v}, {}, {step_count}, run.lr,
                        run.options.adamw.beta1, run.options.adamw.beta2, run.options.adamw.weight_decay,
                        run.options.adamw.eps, false, false);
    }
  }
  expect_close(result.losses, losses);
  expect_close(result.norms, norms);
  EXPECT_LT(result.losses.back(), 0.9 * result.losses.front());
}

TEST(EngineParityTest, TwoThreadRanksAreBitEqualToOneRankThatAccumulatesTwo) {
  const auto one = train({.world = 1, .micro_batches = 2, .steps = 20});
  const auto two = train({.world = 2, .micro_batches = 1, .steps = 20});
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_EQ(one.norms, two.norms);
  EXPECT_TRUE(one.state == two.state);
}

TEST(EngineParityTest, KeptGraphsTrainLikeRecomputedOnesForAnyNumberOfSlots) {
  TrainingRun run{.world = 2, .micro_batches = 2, .steps = 6};
  const auto recomputed = train(run);
  run.options.recompute = {RecomputeLevel::none};
  for (const int slots : {1, 2, 3, 64}) {
    run.options.param_slots = slots;
    const auto kept = train(run);
    EXPECT_EQ(kept.losses, recomputed.losses) << slots << " slots";
    EXPECT_EQ(kept.norms, recomputed.norms) << slots << " slots";
    EXPECT_TRUE(kept.state == recomputed.state) << slots << " slots";
  }
}

TEST(EngineParityTest, WhatRanksKeepWholeChangesNoBitWithoutAccumulation) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    TrainingRun run{.world = 2, .steps = 6};
    run.options.param_dtype = dtype;
    const auto zero3 = train(run);
    run.options.param_slots = 64;
    EXPECT_TRUE(train(run).state == zero3.state) << "zero2";
    run.options.whole_gradients = true;
    const auto zero1 = train(run);
    EXPECT_EQ(zero1.losses, zero3.losses);
    EXPECT_TRUE(zero1.state == zero3.state) << "zero1";
    run.options.param_slots = 1;
    EXPECT_TRUE(train(run).state == zero3.state) << "whole gradients alone";
  }
}

TEST(EngineParityTest, ReplicasOfShardsTrainLikeRanksThatAllShare) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    TrainingRun run{.world = 4, .micro_batches = 2, .steps = 10};
    run.options.param_dtype = dtype;
    const auto zero3 = train(run);
    for (const int sharing : {1, 2}) {
      run.options.sharing_ranks = sharing;
      const auto hybrid = train(run);
      ASSERT_EQ(hybrid.losses.size(), zero3.losses.size());
      const double tolerance = dtype == at::kFloat ? 1e-6 : 1e-3;
      for (std::size_t step = 0; step < zero3.losses.size(); ++step) {
        EXPECT_NEAR(hybrid.losses[step], zero3.losses[step], tolerance * zero3.losses[step]) << sharing << " ranks";
        EXPECT_NEAR(hybrid.norms[step], zero3.norms[step], 10 * tolerance * zero3.norms[step]) << sharing << " ranks";
      }
      EXPECT_EQ(train(run).losses, hybrid.losses) << "a second run";
    }
    // one micro-batch a rank, summed in the same order as by two ranks that accumulate
    run.options.sharing_ranks = 1;
    run.world = 2;
    run.micro_batches = 1;
    const auto replicas = train(run);
    run.options.sharing_ranks = 0;
    EXPECT_TRUE(train(run).state == replicas.state);
  }
}

TEST(EngineParityTest, RanksThatAreNoMultipleOfAReplicaAreRefused) {
  EngineOptions options;
  options.sharing_ranks = 2;
  run_thread_ranks(3, [&](Collective& group) {
    Engine engine(std::make_shared<ChainNetwork>(), options);
    const auto attached = engine.attach(group);
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().message(), "3 ranks are no multiple of 2");
  });
}

TEST(EngineParityTest, GradientsThatAreAddedUpWholeAreThoseOfEveryMicroBatchSummed) {
  TrainingRun run{.world = 2, .micro_batches = 3, .steps = 10};
  const auto zero3 = train(run);
  run.options.whole_gradients = true;
  const auto zero1 = train(run);
  for (std::size_t step = 0; step < zero3.losses.size(); ++step)
    EXPECT_NEAR(zero1.losses[step], zero3.losses[step], 1e-6 * std::abs(zero3.losses[step]));
  // the sums of a rank that is alone have one order whatever the mode
  run.world = 1;
  const auto alone = train(run);
  run.options.whole_gradients = false;
  EXPECT_TRUE(alone.state == train(run).state);
}

TEST(EngineParityTest, TwoRunsOnThreadRanksAreBitEqual) {
  const auto first = train({.world = 3, .micro_batches = 2, .steps = 6});
  const auto second = train({.world = 3, .micro_batches = 2, .steps = 6});
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_TRUE(first.state == second.state);
}

TEST(EngineParityTest, EveryWorldSizeWithTheSameGlobalBatchAgrees) {
  const auto reference = train({.world = 1, .micro_batches = 4, .steps = 10});
  for (const int world : {2, 4})
    expect_close(train({.world = world, .micro_batches = 4 / world, .steps = 10}).losses, reference.losses);
}

TEST(EngineParityTest, AccumulatingFourMicroBatchesEqualsOneBatchOfFour) {
  std::vector<at::Tensor> inputs, targets;
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto batch = chain_batch(i);
    inputs.push_back(batch.at("input"));
    targets.push_back(batch.at("target"));
  }
  const Batch joined{{"input", at::cat(inputs)}, {"target", at::cat(targets)}};
  run_thread_ranks(1, [&](Collective& group) {
    StartedEngine engine(group);
    double accumulated = 0;
    for (std::int64_t j = 0; j < 4; ++j)
      accumulated += 0.25 * engine.accumulate(chain_batch(j), 0.25, j == 0).value().loss;
    const double norm_accumulated = engine.vote({}, {}).value().grad_norm;
    const double whole = engine.accumulate(joined, 1.0, true).value().loss;
    const double norm_whole = engine.vote({}, {}).value().grad_norm;
    EXPECT_NEAR(accumulated, whole, kGroupingTolerance * whole);
    EXPECT_NEAR(norm_accumulated, norm_whole, kGroupingTolerance * norm_whole);
  });
}

TEST(EngineParityTest, ForwardGivesTheLossOfTheMicroBatchWithoutTouchingTheStep) {
  run_thread_ranks(2, [](Collective& group) {
    StartedEngine engine(group);
    const auto batch = chain_batch(group.rank());
    const auto first = engine.accumulate(batch, 0.25, true).value();
    const auto outputs = engine.forward(batch).value();
    EXPECT_EQ(outputs.loss.item<double>(), first.loss);
    EXPECT_EQ(outputs.predictions.at("y").size(0), 4);
    EXPECT_FALSE(outputs.loss.requires_grad());
    const auto second = engine.accumulate(chain_batch(2 + group.rank()), 0.25, false).value();
    const auto with_forward = engine.vote({}, {}).value().grad_norm;
    ASSERT_TRUE(engine.accumulate(batch, 0.25, true));
    EXPECT_EQ(engine.accumulate(chain_batch(2 + group.rank()), 0.25, false).value().loss, second.loss);
    EXPECT_EQ(engine.vote({}, {}).value().grad_norm, with_forward);
  });
}

TEST(EngineParityTest, Bf16ParametersTrainCloseToF32) {
  TrainingRun run{.world = 2, .steps = 40, .lr = 2e-3};
  const auto exact = train(run);
  run.options.param_dtype = at::kBFloat16;
  const auto rounded = train(run);
  EXPECT_NE(exact.losses, rounded.losses);
  EXPECT_NEAR(rounded.losses[0], exact.losses[0], 0.01 * exact.losses[0]);  // 8 bits of mantissa
  double exact_tail = 0, rounded_tail = 0;
  for (std::size_t i = 30; i < 40; ++i) {
    exact_tail += exact.losses[i];
    rounded_tail += rounded.losses[i];
  }
  EXPECT_NEAR(rounded_tail, exact_tail, 0.05 * exact_tail);
}

}  // namespace
}  // namespace troupe::model

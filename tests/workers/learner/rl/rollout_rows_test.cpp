#include "workers/learner/rl/rollout_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/loss/rl_keys.h"
#include "tests/workers/rollout/item_builder.h"
#include "tests/workers/rollout/played_item.h"

namespace troupe::workers {
namespace {

/// One item of two environments: discount and lambda 1/2, rewards 1, values 1 in row 0 and 2 in row 1 unless a test
/// says otherwise.
struct RolloutRowsTest : ::testing::Test {
  static ItemBuilder item(const JobConfig& job) {
    ItemBuilder built(job, line_spec());
    for (std::int64_t t = 0; t <= built.layout().calls; ++t) {
      built.view().value(t)[0] = 1;
      built.view().value(t)[1] = 2;
    }
    return built;
  }
  static RolloutBatch batch_of(const JobConfig& job, const std::vector<ItemBuilder*>& builders) {
    std::vector<CollectedItem> items;
    for (ItemBuilder* builder : builders) items.push_back(builder->item(static_cast<std::int64_t>(items.size())));
    const ItemBuilder& any = *builders.front();
    return make_rollout_batch(any.layout(), any.net(), any.shape(job), items);
  }
  static RolloutRows rows_of(const JobConfig& job, const std::vector<ItemBuilder*>& builders) {
    const RolloutBatch batch = batch_of(job, builders);
    return make_rollout_rows(job, batch, {.reward = batch.reward});
  }
  static RolloutRows rows_of(const JobConfig& job, ItemBuilder& built) { return rows_of(job, {&built}); }
  /// Of a policy whose log-probabilities are now higher by `shift`, one number a row.
  static RolloutRows vtrace_rows(const JobConfig& job, ItemBuilder& built, const at::Tensor& shift = at::zeros({1})) {
    const RolloutBatch batch = batch_of(job, {&built});
    return make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = batch.logp.flatten(0, 1) + shift});
  }
  /// A job whose rows of two environments are compared with each other.
  static JobConfig group_job() {
    JobConfig job = line_job(Algorithm::grpo, 2);
    job.env.group_size = 2;
    job.env.reset_mode = "episode";
    return job;
  }
  /// Number of call t and environment b of two.
  static float cell(const RolloutRows& rows, const char* key, std::int64_t t, std::int64_t b) {
    return rows.rows.at(key)[2 * t + b][0].item<float>();
  }
};

TEST_F(RolloutRowsTest, ItemsLieSideBySideAndRowsAreTimeFirst) {
  const JobConfig job = line_job(Algorithm::ppo, 3);
  ItemBuilder first(job, line_spec(), 0), second(job, line_spec(), 1);
  const RolloutBatch batch = batch_of(job, {&first, &second});
  EXPECT_EQ(batch.calls(), 3);
  EXPECT_EQ(batch.rows(), 4);
  const RolloutRows rows = make_rollout_rows(job, batch, {.reward = batch.reward});
  EXPECT_EQ(rows.count, 12);
  const at::Tensor state = rows.rows.at(rl_keys::kState);
  for (std::int64_t t = 0; t < 3; ++t) {
    EXPECT_EQ(state[4 * t + 1][0].item<float>(), first.mark(t, 1));
    EXPECT_EQ(state[4 * t + 2][0].item<float>(), second.mark(t, 0));
    EXPECT_EQ(rows.rows.at(rl_keys::kAction)[4 * t + 3][0].item<float>(), second.mark(t, 1));
  }
}

TEST_F(RolloutRowsTest, AdvantagesAreThoseOfTheFormula) {
  const JobConfig job = line_job(Algorithm::ppo, 2);
  ItemBuilder built = item(job);
  const RolloutRows rows = rows_of(job, built);
  // environment 0: d = 1 + 0.5 - 1 = 0.5 twice;  A_1 = 0.5, A_0 = 0.5 + 0.25 * 0.5
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 0.5f);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0.625f);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kReturn, 0, 0), 1.625f);
  // environment 1: d = 1 + 1 - 2 = 0
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 1), 0);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kReturn, 0, 1), 2);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kOldValue, 0, 1), 2);
}

TEST_F(RolloutRowsTest, ATerminationHasNoValueBehindItAndATruncationHasTheFinalOnes) {
  const JobConfig job = line_job(Algorithm::ppo, 2);
  ItemBuilder built = item(job);
  built.end(0, 0, true).end(0, 1, false);
  built.view().final_value(0)[0] = 40;
  built.view().final_value(0)[1] = 6;
  const RolloutRows rows = rows_of(job, built);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0);  // 1 - 1
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 1), 2);  // 1 + 0.5 * 6 - 2
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 0.5f);
}

TEST_F(RolloutRowsTest, ChunksAreOneStepAndDiscountOnce) {
  const JobConfig job = line_job(Algorithm::ppo, 2, 3);
  ItemBuilder built = item(job);
  const RolloutRows rows = rows_of(job, built);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 2.5f);  // 3 + 0.5 - 1
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 3.125f);
  EXPECT_EQ(rows.valid_cells.sizes().vec(), (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(rows.rows.at(rl_keys::kMask).sizes().vec(), (std::vector<std::int64_t>{4, 3}));
}

TEST_F(RolloutRowsTest, ActionsThatWereNotExecutedAreMasked) {
  JobConfig job = line_job(Algorithm::ppo, 2, 3);
  ItemBuilder built = item(job);
  built.end(0, 0, true, 1);
  const RolloutRows rows = rows_of(job, built);
  EXPECT_TRUE(rows.rows.at(rl_keys::kMask)[0].to(at::kInt).equal(at::tensor({1, 1, 0}, at::kInt)));
  EXPECT_TRUE(rows.rows.at(rl_keys::kMask)[1].all().item<bool>());
  EXPECT_TRUE(rows.valid_cells.all().item<bool>());
  EXPECT_EQ(cell(rows, rl_keys::kValidSteps, 0, 0), 5);
  EXPECT_EQ(cell(rows, rl_keys::kValidSteps, 1, 1), 6);
}

TEST_F(RolloutRowsTest, ALostRowIsMaskedAndLeavesEarlierAdvantagesAsIfItsValueWereTrue) {
  const JobConfig job = line_job(Algorithm::ppo, 3);
  ItemBuilder built = item(job);
  built.lose(1, 0);
  built.view().reward(1)[0] = 1e6f;
  built.view().final_value(1)[0] = 1e6f;
  built.view().value(2)[0] = 77;
  const RolloutRows rows = rows_of(job, built);
  EXPECT_FALSE(rows.valid_cells[2].item<bool>());
  EXPECT_FALSE(rows.rows.at(rl_keys::kMask)[2].item<bool>());
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 0);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0.5f);  // 1 + 0.5 * V(the state at which it was lost) - 1
  EXPECT_EQ(cell(rows, rl_keys::kValidSteps, 0, 0), 2);
}

TEST_F(RolloutRowsTest, ALostRowDoesNotTouchAdvantagesPerActionEither) {
  JobConfig job = line_job(Algorithm::ppo, 3, 2);
  job.algorithm.policy_gradient.reward_level = "action";
  const auto advantages = [&](bool is_lost, float reward) {
    ItemBuilder built = item(job);
    if (is_lost) built.lose(1, 0);
    built.view().reward(1)[0] = reward;
    const RolloutBatch batch = batch_of(job, {&built});
    RolloutBatch wide = batch;  // a critic with a value per action
    wide.value = batch.value.expand({4, 2, 2}).contiguous();
    return make_rollout_rows(job, wide, {.reward = wide.reward}).rows.at(rl_keys::kAdvantage).clone();
  };
  const at::Tensor lost = advantages(true, 1e6f);
  EXPECT_TRUE(lost.equal(advantages(true, 1)));
  EXPECT_FLOAT_EQ(lost[0][1].item<float>(), 0.5f);  // the last action before it: 1 + 0.5 * 1 - 1
  EXPECT_FLOAT_EQ(lost[0][0].item<float>(), 0.625f);
}

TEST_F(RolloutRowsTest, GroupsAreComparedWithinThemselves) {
  const JobConfig job = group_job();
  ItemBuilder built = item(job);
  built.end(0, 0, true).freeze(1, 0);
  const RolloutRows rows = rows_of(job, built);
  // returns 1 and 2: mean 1.5, deviation sqrt(1/2)
  const float expected = static_cast<float>(0.5 / (std::sqrt(0.5) + 1e-6));
  EXPECT_NEAR(cell(rows, rl_keys::kAdvantage, 0, 0), -expected, 1e-5);
  EXPECT_NEAR(cell(rows, rl_keys::kAdvantage, 0, 1), expected, 1e-5);
  EXPECT_NEAR(cell(rows, rl_keys::kAdvantage, 1, 1), expected, 1e-5);
  EXPECT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 0);
  EXPECT_FALSE(rows.valid_cells[2].item<bool>());
  EXPECT_EQ(rows.rows.count(rl_keys::kReturn), 0u);
  EXPECT_EQ(rows.rows.count(rl_keys::kOldValue), 0u);
}

TEST_F(RolloutRowsTest, AGroupThatLostAMemberIsNotTrained) {
  const JobConfig job = group_job();
  ItemBuilder broken(job, line_spec()), never_begun(job, line_spec()), whole = item(job);
  broken.lose(1, 0);
  never_begun.freeze(0, 1);  // lost by its reset
  const RolloutRows rows = rows_of(job, {&broken, &never_begun, &whole});
  const at::Tensor cells = rows.valid_cells.view({2, 6});
  EXPECT_FALSE(cells.narrow(1, 0, 4).any().item<bool>());
  EXPECT_TRUE(cells.narrow(1, 4, 2).all().item<bool>());
  EXPECT_FALSE(rows.rows.at(rl_keys::kMask).view({2, 6}).narrow(1, 0, 4).any().item<bool>());
}

TEST_F(RolloutRowsTest, WhatJudgesActionsAgainHasEveryRowAndTheNoiseOfToday) {
  const JobConfig job = line_job(Algorithm::vtrace, 2);
  ItemBuilder built = item(job);
  const RolloutBatch batch = batch_of(job, {&built});
  const Batch inputs = density_inputs(batch, 0.125);
  EXPECT_EQ(inputs.at(rl_keys::kState).size(0), 4);
  EXPECT_EQ(inputs.at(rl_keys::kAction)[3][0].item<float>(), built.mark(1, 1));
  EXPECT_EQ(inputs.at(rl_keys::kNoiseLevel).item<float>(), 0.125f);
}

TEST_F(RolloutRowsTest, GroupsOutsideTheFilterAreNotTrained) {
  JobConfig job = group_job();
  job.algorithm.policy_gradient.filter_low = 1.6;
  job.algorithm.policy_gradient.filter_high = 1.9;
  ItemBuilder good(job, line_spec()), bad = item(job);
  good.view().reward(0)[0] = 0.5f;  // returns 1.5 and 2: mean 1.75; of the other group 2 and 2
  const RolloutRows rows = rows_of(job, {&good, &bad});
  const at::Tensor cells = rows.valid_cells.view({2, 4});
  EXPECT_TRUE(cells.narrow(1, 0, 2).all().item<bool>());
  EXPECT_FALSE(cells.narrow(1, 2, 2).any().item<bool>());
  EXPECT_FALSE(rows.rows.at(rl_keys::kMask).view({2, 4}).narrow(1, 2, 2).any().item<bool>());
}

TEST_F(RolloutRowsTest, VtraceWithEqualPoliciesIsTheLambdaReturn) {
  const JobConfig job = line_job(Algorithm::vtrace, 2);
  ItemBuilder built = item(job);
  const RolloutRows rows = vtrace_rows(job, built);
  // d = 0.5 twice; vs_1 = 1 + 0.5, vs_0 = 1 + 0.5 + 0.5 * 0.5 * 0.5; A_0 = 1 + 0.5 * vs_1 - 1
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kReturn, 1, 0), 1.5f);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kReturn, 0, 0), 1.625f);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0.75f);
}

TEST_F(RolloutRowsTest, VtraceWeighsByTheRatioUpToItsBar) {
  const JobConfig job = line_job(Algorithm::vtrace, 1);
  ItemBuilder built = item(job);
  const at::Tensor shift = at::tensor({std::log(0.5f), std::log(4.0f)}).view({2, 1});
  const RolloutRows rows = vtrace_rows(job, built, shift);
  EXPECT_NEAR(cell(rows, rl_keys::kAdvantage, 0, 0), 0.25f, 1e-6);  // half of 0.5
  built.view().value(1)[1] = 4;
  const RolloutRows capped = vtrace_rows(job, built, shift);
  EXPECT_NEAR(cell(capped, rl_keys::kAdvantage, 0, 1), 1, 1e-6);  // 1 + 2 - 2, weight 1 in place of 4
}

TEST_F(RolloutRowsTest, VtraceDoesNotWeighActionsThatWereNotExecuted) {
  const JobConfig job = line_job(Algorithm::vtrace, 1, 3);
  ItemBuilder built = item(job);
  built.view().value(0)[0] = 0.25f;
  built.end(0, 0, true, 0);
  const RolloutBatch batch = batch_of(job, {&built});
  at::Tensor current = batch.logp.flatten(0, 1).clone();
  current[0].narrow(0, 1, 2).sub_(3);  // the new policy would hardly have drawn the two that nobody played
  const RolloutRows rows = make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = current});
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0.75f);  // 1 - 0.25, weight 1
}

/// Chunks of three actions of which two are played.
struct PlayedPartTest : RolloutRowsTest {
  static JobConfig job_of(Algorithm algorithm) {
    JobConfig job = line_job(algorithm, 2, 3);
    job.env.exec_steps = 2;
    job.rollout.steps = 4;
    return job;
  }
  static ItemBuilder item(const JobConfig& job) {
    ItemBuilder built = RolloutRowsTest::item(job);
    for (std::int64_t t = 0; t < built.layout().calls; ++t) {
      for (std::size_t row = 0; row < 2; ++row) {
        built.view().reward(t)[3 * row + 2] = 0;
        built.view().valid(t)[3 * row + 2] = 0;
      }
    }
    return built;
  }
};

TEST_F(PlayedPartTest, DiscountsCountThePlayedActionsAlone) {
  for (const auto algorithm : {Algorithm::ppo, Algorithm::vtrace}) {
    JobConfig job = job_of(algorithm);
    job.algorithm.discount = "semi_mdp";
    ItemBuilder built = item(job);
    const RolloutRows rows = vtrace_rows(job, built);
    EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 1, 0), 0.75f) << enum_name(algorithm);  // 1 + 0.5 + 0.5^2 - 1
  }
}

TEST_F(PlayedPartTest, LogProbabilitiesOfWhatIsNotPlayedChangeNoBit) {
  for (const auto algorithm : {Algorithm::ppo, Algorithm::grpo, Algorithm::decoupled_ppo, Algorithm::vtrace}) {
    JobConfig job = job_of(algorithm);
    if (algorithm == Algorithm::grpo) job.env.group_size = 2;
    ItemBuilder built = item(job);
    const auto rows_of = [&](float shift) {
      RolloutBatch batch = batch_of(job, {&built});
      const at::Tensor current = batch.logp.flatten(0, 1) + 0.1;
      batch.logp = batch.logp + shift * batch.mask.logical_not();
      return make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = current}).rows;
    };
    Batch rows = rows_of(1), want = rows_of(0);
    EXPECT_EQ(rows.at(rl_keys::kMask).sum().item<std::int64_t>(), 4 * 2);
    for (const auto& [key, tensor] : want) {
      if (key == rl_keys::kOldLogp) continue;
      EXPECT_TRUE(rows.at(key).equal(tensor)) << enum_name(algorithm) << " " << key;
    }
  }
}

TEST_F(PlayedPartTest, AdvantagesPerActionPassOverWhatIsNotPlayed) {
  JobConfig job = job_of(Algorithm::ppo);
  job.algorithm.policy_gradient.reward_level = "action";
  ItemBuilder built = item(job);
  RolloutBatch wide = batch_of(job, {&built});
  wide.value = wide.value.expand({3, 2, 3}).contiguous();  // a critic with a value per action
  const RolloutRows rows = make_rollout_rows(job, wide, {.reward = wide.reward});
  const at::Tensor advantage = rows.rows.at(rl_keys::kAdvantage);
  EXPECT_EQ(advantage.sizes().vec(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_FLOAT_EQ(advantage[2][1].item<float>(), 0.5f);  // 1 + 0.5 * 1 - 1
  EXPECT_FLOAT_EQ(advantage[2][0].item<float>(), 0.625f);
  EXPECT_FLOAT_EQ(advantage[0][1].item<float>(), 0.65625f);  // the next played action is the next call's first
  EXPECT_FALSE(rows.valid_cells.select(1, 2).any().item<bool>());
}

TEST_F(RolloutRowsTest, ALostRowDoesNotFlowThroughVtrace) {
  const JobConfig job = line_job(Algorithm::vtrace, 2);
  ItemBuilder built = item(job);
  built.lose(1, 0);
  built.view().reward(1)[0] = -1e6f;
  const RolloutRows rows = vtrace_rows(job, built);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kReturn, 0, 0), 1.5f);
  EXPECT_FLOAT_EQ(cell(rows, rl_keys::kAdvantage, 0, 0), 0.5f);
}

TEST_F(RolloutRowsTest, VersionsAndReferenceLogProbabilitiesTravelAlong) {
  const JobConfig job = line_job(Algorithm::ppo, 2);
  ItemBuilder built = item(job);
  built.view().version(1)[0] = 8;
  const RolloutBatch batch = batch_of(job, {&built});
  const at::Tensor reference = at::arange(4, at::kFloat).view({4, 1});
  const RolloutRows rows = make_rollout_rows(job, batch, {.reward = batch.reward, .reference_logp = reference});
  EXPECT_EQ(rows.rows.at(rl_keys::kVersion)[2].item<std::int64_t>(), 8);
  EXPECT_TRUE(rows.rows.at(rl_keys::kReferenceLogp).equal(reference));
}

/// A worked example as those of tests/model/loss/vectors_test.cpp: an environment that is over after its second step.
TEST(RlVectorsTest, MaskOfVectorThirteen) {
  const auto ends = at::tensor({0, 1, 0, 1}).reshape({4, 1, 1});
  auto job = recorded_job(ends.sizes(), "episode");
  job.algorithm.name = Algorithm::grpo;
  const auto batch = PlayedItem(job, {at::zeros_like(ends), ends}).batch();
  const RolloutRows rows = make_rollout_rows(job, batch, {.reward = batch.reward});
  EXPECT_TRUE(at::equal(rows.valid_cells.reshape({4}).to(at::kLong), at::tensor({1, 1, 0, 0}, at::kLong)));
  EXPECT_TRUE(
      at::equal(rows.rows.at(rl_keys::kValidSteps).reshape({4}).to(at::kLong), at::tensor({2, 2, 2, 2}, at::kLong)));
}

}  // namespace
}  // namespace troupe::workers

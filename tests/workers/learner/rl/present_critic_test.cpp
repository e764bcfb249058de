// V-trace judges a rollout with the critic of today, not with what the critic of its time said.
#include "workers/learner/rl/present_critic.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/loss/rl_keys.h"
#include "tests/workers/rollout/item_builder.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::workers {
namespace {

/// Items whose critic said 1 of everything, and a critic that says twice the sum of a state.
struct PresentCriticTest : ::testing::Test {
  static ItemBuilder item(const JobConfig& job, bool has_image = false) {
    ItemBuilder built(job, line_spec(has_image));
    for (std::int64_t t = 0; t <= built.layout().calls; ++t) std::ranges::fill(built.view().value(t), 1.0f);
    return built;
  }
  static RolloutBatch judged(const JobConfig& job, const ItemBuilder& built) {
    const std::vector<CollectedItem> items{built.item(0)};
    RolloutBatch batch = make_rollout_batch(built.layout(), built.net(), built.shape(job), items);
    ParamView actor;
    actor.set("w", at::full({1}, 2.0f));
    value_again(batch, built.net(), {{"actor", actor}});
    return batch;
  }
};

TEST_F(PresentCriticTest, EveryObservationIsValuedAgain) {
  const JobConfig job = line_job(Algorithm::vtrace, 3);
  const ItemBuilder built = item(job);
  const RolloutBatch batch = judged(job, built);
  EXPECT_EQ(batch.value.sizes().vec(), (std::vector<std::int64_t>{4, 2, 1}));
  for (std::int64_t t = 0; t <= 3; ++t) {
    for (std::int64_t b = 0; b < 2; ++b)
      EXPECT_FLOAT_EQ(batch.value[t][b][0].item<float>(), 2 * (built.mark(t, static_cast<std::size_t>(b)) - 1));
  }
}

TEST_F(PresentCriticTest, SoIsTheObservationAtWhichAnEpisodeEnded) {
  const JobConfig job = line_job(Algorithm::vtrace, 3);
  ItemBuilder built = item(job);
  built.end(1, 0, false).lose(2, 1);
  built.view().final_value(1)[0] = built.view().final_value(2)[1] = 77;
  const RolloutBatch batch = judged(job, built);
  EXPECT_FLOAT_EQ(batch.final_value[1][0][0].item<float>(), 2 * (built.mark(1, 0) + 0.5f));
  EXPECT_FLOAT_EQ(batch.final_value.sum().item<float>(), 2 * (built.mark(1, 0) + 0.5f));
}

TEST_F(PresentCriticTest, TargetsAndAdvantagesFollow) {
  const JobConfig job = line_job(Algorithm::vtrace, 1);
  ItemBuilder built = item(job);
  built.end(0, 0, false);
  const RolloutBatch batch = judged(job, built);
  const RolloutRows rows =
      make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = batch.logp.flatten(0, 1)});
  // reward 1, discount 1/2, equal policies: V(end) = 2 * 0.5 for row 0, V(after) = 2 * (11 - 1) for row 1
  EXPECT_FLOAT_EQ(rows.rows.at(rl_keys::kReturn)[0][0].item<float>(), 1.5f);
  EXPECT_FLOAT_EQ(rows.rows.at(rl_keys::kAdvantage)[0][0].item<float>(), 1.5f + 2);
  EXPECT_FLOAT_EQ(rows.rows.at(rl_keys::kReturn)[1][0].item<float>(), 11);
  EXPECT_FLOAT_EQ(rows.rows.at(rl_keys::kOldValue)[0][0].item<float>(), -2);
}

TEST_F(PresentCriticTest, ItemsHoldFinalObservationsWhereTheLearnerBootstrapsAtThem) {
  JobConfig job = line_job(Algorithm::vtrace, 1);
  const ItemBuilder with = item(job, true);
  EXPECT_TRUE(with.layout().final_state.is_present());
  EXPECT_EQ(with.layout().final_images.size(), 1u);
  job.algorithm.policy_gradient.bootstrap = "never";
  EXPECT_FALSE(item(job).layout().final_state.is_present());
  job.algorithm.policy_gradient.bootstrap = "standard";
  job.env.reset_mode = "fixed";
  const ItemBuilder without = item(job);
  EXPECT_FALSE(without.layout().final_state.is_present());
  EXPECT_EQ(judged(job, without).final_value.sum().item<float>(), 0);
}

}  // namespace
}  // namespace troupe::workers

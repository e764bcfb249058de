#include "workers/learner/rl/rollout_batch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/loss/rl_keys.h"
#include "tests/workers/rollout/item_builder.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor all = tensor.to(at::kLong).contiguous();
  return {all.const_data_ptr<std::int64_t>(), all.const_data_ptr<std::int64_t>() + all.numel()};
}

TEST(RolloutBatchTest, FinalObservationsComeInTheOrderOfTheBatchesRows) {
  const JobConfig job = line_job(Algorithm::vtrace, 3);
  ItemBuilder first(job, line_spec(true), 0), second(job, line_spec(true), 1);
  first.end(2, 0, true).end(0, 1, false);
  second.end(0, 0, false).lose(1, 0).end(2, 1, false);
  const std::vector<CollectedItem> items{first.item(0), second.item(1)};
  const RolloutBatch batch = make_rollout_batch(first.layout(), first.net(), first.shape(job), items);
  // four environments: two of each item
  EXPECT_THAT(numbers(batch.final_rows), ElementsAre(0 * 4 + 1, 0 * 4 + 2, 2 * 4 + 0, 2 * 4 + 3));
  const at::Tensor state = batch.final_observation.at(rl_keys::kState);
  EXPECT_EQ(state.sizes().vec(), (std::vector<std::int64_t>{4, 2}));
  EXPECT_THAT(numbers(state.select(1, 0) - 0.5), ElementsAre(1, 100, 20, 121));
  const at::Tensor pictures = batch.final_observation.at(std::string(rl_keys::kImagePrefix) + "rgb");
  EXPECT_EQ(pictures.sizes().vec(), (std::vector<std::int64_t>{4, 1, 1, 3}));
  EXPECT_THAT(numbers(pictures.flatten(1).select(1, 0)), ElementsAre(6, 105, 25, 126));
}

TEST(RolloutBatchTest, AFinalObservationIsToldWhatItsEpisodeWas) {
  JobConfig job = line_job(Algorithm::vtrace, 3);
  job.policy.text = TextReader::words;
  EnvSpec spec = line_spec();
  spec.observation.push_back({.name = "order", .shape = {4}, .dtype = EnvDType::u8, .reader = EnvReader::text});
  ItemBuilder one(job, spec);
  one.end(0, 1, false).end(2, 0, true);
  for (std::int64_t t = 0; t <= 3; ++t) {
    for (std::size_t row = 0; row < 2; ++row)
      one.view().text(0, t)[4 * row] = static_cast<std::uint8_t>(one.mark(t, row));
  }
  const std::vector<CollectedItem> items{one.item(0)};
  const RolloutBatch batch = make_rollout_batch(one.layout(), one.net(), one.shape(job), items);
  EXPECT_EQ(batch.observation.at("text.order").sizes().vec(), (std::vector<std::int64_t>{4, 2, 4}));
  EXPECT_THAT(numbers(batch.final_observation.at("text.order").select(1, 0)), ElementsAre(1, 20));
}

TEST(RolloutBatchTest, NoEpisodeEndedIsNoFinalObservation) {
  const JobConfig job = line_job(Algorithm::vtrace, 3);
  const ItemBuilder one(job, line_spec(true));
  const std::vector<CollectedItem> items{one.item(0)};
  const RolloutBatch batch = make_rollout_batch(one.layout(), one.net(), one.shape(job), items);
  EXPECT_EQ(batch.final_rows.numel(), 0);
  EXPECT_EQ(batch.final_observation.at(rl_keys::kState).size(0), 0);
}

}  // namespace
}  // namespace troupe::workers

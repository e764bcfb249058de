#include "workers/learner/rl/initial_policy.h"

#include <gmock/gmock.h>

#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/manifest.h"
#include "workers/checkpoint/writer.h"
#include "workers/learner/rl/running_statistics.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

/// A checkpoint with the statistics of two numbers and of returns, and jobs that begin with it.
class InitialStatisticsTest : public ::testing::Test {
 protected:
  static NormaliserState counted() {
    NormaliserState state{Moments(2), Moments(1)};
    state.observed.add(std::vector<float>{1, 2, 3, 6});
    state.returned.add(std::vector<float>{5, 7, 9});
    return state;
  }

  std::string write(const NormaliserState& normaliser) {
    Manifest m;
    m.step = 3;
    m.fence = 1;
    m.world = 1;
    m.units.push_back({.name = "actor",
                       .layout_class = "actor",
                       .params = {{"actor.0.bias", {2}, 0, 2}},
                       .numel = 2,
                       .layout_hash = 1,
                       .trainable = false});
    m.optimizer = {.name = "adamw", .lr = 1e-3, .betas = {0.9, 0.999}, .eps = 1e-8, .weight_decay = 0, .updates = 3};
    m.dataset_fingerprint = "f";
    m.version = "0.1.0";
    const std::vector<float> values(static_cast<std::size_t>(m.units[0].shard(1)));
    const std::string temporary = folder_ / checkpoint_tmp_name(m.step, m.fence);
    const RlTrainerState state{.present = true, .normaliser = normaliser};
    CheckpointWriter()
        .write({.directory = temporary,
                .manifest = m,
                .ranks = {std::as_bytes(std::span(values))},
                .attachments = {{kTrainerStateFile, state.text()}}})
        .value();
    return commit_checkpoint(folder_.path(), temporary, m.step).value();
  }

  static Result<NormaliserState> begin(const std::string& checkpoint, bool normalize_obs, bool normalize_reward,
                                       std::int64_t state_dim = 2) {
    JobConfig job;
    job.model.init.mode = "checkpoint";
    job.model.init.path = checkpoint;
    job.rollout.normalize_obs = normalize_obs;
    job.rollout.normalize_reward = normalize_reward;
    return initial_statistics(job, RunningStatistics(job.rollout, state_dim).state());
  }

  ScratchFolder folder_;
};

TEST_F(InitialStatisticsTest, AreTheCheckpoints) {
  const auto found = begin(write(counted()), true, true);
  EXPECT_EQ(encode(*found), encode(counted()));
}

TEST_F(InitialStatisticsTest, AJobWithoutACheckpointHasCountedNothing) {
  JobConfig job;
  job.rollout.normalize_obs = true;
  const auto found = initial_statistics(job, RunningStatistics(job.rollout, 2).state());
  EXPECT_EQ(found->observed.count(), 0);
  EXPECT_EQ(found->observed.dim(), 2U);
}

TEST_F(InitialStatisticsTest, ReturnsBeginAnewWhereOnlyOneJobNormalisesThem) {
  const auto found = begin(write(counted()), true, false);
  EXPECT_EQ(found->observed.count(), 2);
  EXPECT_EQ(found->returned.dim(), 0U);
}

TEST_F(InitialStatisticsTest, APolicyOfNormalisedObservationsWantsThem) {
  const auto found = begin(write(counted()), false, false);
  EXPECT_EQ(found.error().code(), Errc::failed_precondition);
  EXPECT_THAT(
      found.error().message(),
      HasSubstr(
          "reads 2 normalised numbers, this job's observations as they are (rollout.normalize_obs): set it to true"));
}

TEST_F(InitialStatisticsTest, APolicyOfPlainObservationsWantsThose) {
  const auto found = begin(write({}), true, false);
  EXPECT_THAT(
      found.error().message(),
      HasSubstr(
          "reads observations as they are, this job's 2 normalised numbers (rollout.normalize_obs): set it to false"));
}

TEST_F(InitialStatisticsTest, AnotherNumberOfObservationsIsRefused) {
  EXPECT_THAT(begin(write(counted()), true, false, 3).error().message(),
              HasSubstr("reads 2 normalised numbers, this job's 3 normalised numbers"));
}

}  // namespace
}  // namespace troupe::workers

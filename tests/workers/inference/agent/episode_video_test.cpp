#include "workers/inference/agent/episode_video.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "data/video/video_file.h"
#include "tests/support/lottery_env.h"
#include "tests/support/scratch_folder.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "workers/inference/agent/episode_runner.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;
using testing::LotteryEnv;
using testing::small_rl_job;
using testing::untrained_weights;

class EpisodeFilmTest : public ::testing::Test {
 protected:
  void SetUp() override { LotteryEnv<true>::add(); }

  /// Plays three episodes with a policy that learned nothing and keeps the actions of those that failed.
  std::vector<EvaluationEpisode> play(const std::string& env) {
    const JobConfig job = small_rl_job(env);
    auto agent = make_agent(job);
    EXPECT_TRUE(agent) << agent.error().message();
    envs_ = agent->envs;
    auto records = run_episodes(*agent, job, untrained_weights(*agent->policy, 1),
                                {.episodes = 3, .parallel = 2, .keep_actions = 3});
    EXPECT_TRUE(records) << records.error().message();
    return records ? *records : std::vector<EvaluationEpisode>{};
  }

  ScratchFolder folder_;
  std::shared_ptr<const EnvFactory> envs_;
};

TEST_F(EpisodeFilmTest, AFailureOfTheArmIsFilmedStepByStep) {
  const auto records = play("arm7/reach-v1");
  const auto names = write_episode_videos(*envs_, records, folder_ / "videos");
  ASSERT_TRUE(names) << names.error().message();
  ASSERT_EQ(names->size(), 3u);
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto info = probe_video(folder_ / ("videos/" + (*names)[i]));
    ASSERT_TRUE(info) << info.error().message();
    EXPECT_EQ(info->frames, records[i].length + 1) << "the beginning and every step";
    EXPECT_EQ(info->width, 256);
    EXPECT_EQ(info->height, 256);
    EXPECT_NEAR(info->fps, envs_->spec().control_hz, 1e-6);
  }
}

TEST_F(EpisodeFilmTest, FilmsOfAnEarlierEvaluationGo) {
  std::filesystem::create_directories(folder_ / "videos");
  for (const char* name : {"seed_7.mp4", "notes.txt"}) std::ofstream(folder_ / "videos/" + std::string(name)) << "old";
  play("arm7/reach-v1");
  const auto names = write_episode_videos(*envs_, {}, folder_ / "videos");
  ASSERT_TRUE(names) << names.error().message();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "videos/seed_7.mp4"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "videos/notes.txt"));
}

TEST_F(EpisodeFilmTest, WithoutACameraNothingIsWritten) {
  const auto records = play("CartPole-v1");
  const auto names = write_episode_videos(*envs_, records, folder_ / "videos");
  ASSERT_TRUE(names) << names.error().message();
  EXPECT_TRUE(names->empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "videos"));
}

TEST_F(EpisodeFilmTest, AnEpisodeThatComesOutDifferentlyIsAnError) {
  auto records = play("lottery-test-v1");
  const auto failed =
      std::find_if(records.begin(), records.end(), [](const auto& record) { return !record.actions.empty(); });
  ASSERT_NE(failed, records.end());
  failed->total_return += 1;
  const auto filmed = write_episode_video(*envs_, *failed, folder_ / "film.mp4");
  ASSERT_FALSE(filmed);
  EXPECT_THAT(filmed.error().message(), HasSubstr("not deterministic"));
}

TEST_F(EpisodeFilmTest, ARecordWithoutActionsCannotBeFilmed) {
  auto records = play("lottery-test-v1");
  records.front().actions.clear();
  const auto filmed = write_episode_video(*envs_, records.front(), folder_ / "film.mp4");
  ASSERT_FALSE(filmed);
  EXPECT_EQ(filmed.error().code(), Errc::failed_precondition);
}

}  // namespace
}  // namespace troupe::workers

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

class EpisodeVideoTest : public ::testing::Test {
 protected:
  void SetUp() override { LotteryEnv<true>::add(); }

  /// Plays three episodes with a policy that learned nothing and keeps the actions of those that failed.
  std::vector<EvaluationEpisode> play(const std::string& env) {
    const JobConfig job = small_rl_job(env);
    auto agent = make_agent(job);
    envs_ = make_env_factory(job.env).value();
    return run_episodes(*agent, job, untrained_weights(*agent->policy, 1),
                        {.episodes = 3, .parallel = 2, .keep_actions = 3})
        .value();
  }

  ScratchFolder folder_;
  std::shared_ptr<const EnvFactory> envs_;
};

TEST_F(EpisodeVideoTest, TheVideoOfAFailureHasEveryStep) {
  const auto records = play("arm7/reach-v1");
  const auto names = write_episode_videos(envs_, records, folder_ / "videos");
  ASSERT_EQ(names->size(), 3u);
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto info = probe_video(folder_ / ("videos/" + (*names)[i]));
    EXPECT_EQ(info->frames, records[i].length + 1) << "the beginning and every step";
    EXPECT_EQ(info->width, 256);
    EXPECT_EQ(info->height, 256);
    EXPECT_NEAR(info->fps, envs_->spec().control_hz, 1e-6);
  }
}

TEST_F(EpisodeVideoTest, VideosOfAnEarlierEvaluationGo) {
  std::filesystem::create_directories(folder_ / "videos");
  for (const char* name : {"seed_7.mp4", "notes.txt"}) std::ofstream(folder_ / "videos/" + std::string(name)) << "old";
  play("arm7/reach-v1");
  write_episode_videos(envs_, {}, folder_ / "videos").value();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "videos/seed_7.mp4"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "videos/notes.txt"));
}

TEST_F(EpisodeVideoTest, WithoutACameraNothingIsWritten) {
  const auto records = play("CartPole-v1");
  EXPECT_TRUE(write_episode_videos(envs_, records, folder_ / "videos")->empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "videos"));
}

TEST_F(EpisodeVideoTest, AnEpisodeThatComesOutDifferentlyIsAnError) {
  auto records = play("lottery-test-v1");
  const auto failed =
      std::find_if(records.begin(), records.end(), [](const auto& record) { return !record.actions.empty(); });
  ASSERT_NE(failed, records.end());
  failed->total_return += 1;
  const auto written = write_episode_video(envs_, *failed, folder_ / "video.mp4");
  EXPECT_THAT(written.error().message(), HasSubstr("not deterministic"));
}

TEST_F(EpisodeVideoTest, ARecordWithoutActionsGivesNoVideo) {
  auto records = play("lottery-test-v1");
  records.front().actions.clear();
  const auto written = write_episode_video(envs_, records.front(), folder_ / "video.mp4");
  EXPECT_EQ(written.error().code(), Errc::failed_precondition);
}

}  // namespace
}  // namespace troupe::workers

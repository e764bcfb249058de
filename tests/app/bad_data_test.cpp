// Damaged datasets: found when they are opened where possible, else at run time; named, and never costing what was
// committed.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class BadDataTest : public RunTest {
 protected:
  static std::string video(int episode) {
    return "data/videos/chunk-000/observation.images.front/episode_00000" + std::to_string(episode) + ".mp4";
  }
  static std::string table(int episode) {
    return "data/data/chunk-000/episode_00000" + std::to_string(episode) + ".parquet";
  }

  /// The job is refused when the dataset is opened, and the message names the file.
  void expect_refused_naming(const std::string& file) {
    expect_end(run_small({}), 2, {}, {fs::path(file).filename().string()});
    EXPECT_EQ(num_runs(), 0u);
    // The other policy leaves the episode out, says so, and trains on the rest.
    expect_end(run_small({"data.bad_sample=skip", "training.steps=4"}), 0, {"left out: "});
    expect_verified(16);
  }
};

TEST_F(BadDataTest, AMissingVideoIsNamed) {
  fs::remove(dir_ / video(2));
  expect_refused_naming(video(2));
}

TEST_F(BadDataTest, ATruncatedTableIsNamed) {
  fs::resize_file(dir_ / table(3), fs::file_size(dir_ / table(3)) / 2);
  expect_refused_naming(table(3));
}

TEST_F(BadDataTest, ADanglingLinkIsNamed) {
  fs::remove(dir_ / video(1));
  fs::create_symlink("nowhere.mp4", dir_ / video(1));
  expect_refused_naming(video(1));
}

TEST_F(BadDataTest, AFolderInTheWayOfAFileIsNamed) {
  fs::remove(dir_ / table(4));
  fs::create_directory(dir_ / table(4));
  expect_refused_naming(table(4));
}

TEST_F(BadDataTest, AReadErrorAtRunTimeFailsTheJobAndKeepsWhatWasCommitted) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  const auto weights = exported();
  expect_end(run_small({"--resume", "auto", "training.steps=20"}, {{"TROUPE_FAULT", "decode@episode_000003:fail:100"}}),
             4, {}, {"episode_000003"});
  expect_verified(16);
  EXPECT_TRUE(exported() == weights);
  // The file is well again: the run goes on from what it had.
  expect_end(run_small({"--resume", "auto"}), 0);
  expect_verified(80);
}

TEST_F(BadDataTest, ASkippedReadErrorIsCountedAndListed) {
  expect_end(run_small(in_processes() + std::vector<std::string>{"data.bad_sample=skip", "data.max_bad_fraction=1"},
                       {{"TROUPE_FAULT", "decode@episode_000003:fail:3"}}),
             0, {"episode_000003"});
  const std::string clips = text_of(dir_ / "runs/latest/bad_clips.jsonl");
  EXPECT_THAT(clips, HasSubstr("episode_000003.mp4\""));
  EXPECT_THAT(clips, HasSubstr("\"group\":-1"));
  const auto verify = troupe({"verify"});
  EXPECT_EQ(verify.exit_code, 0) << verify.text();
  EXPECT_THAT(verify.out, ::testing::Not(HasSubstr("  void 0  ")));
  EXPECT_THAT(verify.out, HasSubstr("  lost 0  doubled 0"));
  EXPECT_THAT(verify.out, HasSubstr("void position "));
}

TEST_F(BadDataTest, ASampleThatEndsItsDecoderTwiceIsLeftOut) {
  // Each decoder's process counts the fault for itself, so every decoder that makes position 13 dies. The job has one
  // rank, because the feed of a second rank would blame a sample of its own for the same deaths (docs/channels.md).
  expect_end(run_small(in_processes() +
                           std::vector<std::string>{"data.max_bad_fraction=1", "cluster.component_placement.learner=0"},
                       {{"TROUPE_FAULT", "decoder.item@position 13:crash"}}),
             0, {"position 13 is left out: decoder/"});
  const std::string listed = text_of(dir_ / "runs/latest/quarantine.jsonl");
  EXPECT_THAT(listed, HasSubstr("\"position\":13"));
  EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 1);
  expect_verified(79, 1);
}

TEST_F(BadDataTest, MoreBadSamplesThanAllowedStopTheJob) {
  expect_end(run_small({"data.bad_sample=skip"}, {{"TROUPE_FAULT", "decode@episode_000003:fail:100"}}), 4, {},
             {"data.max_bad_fraction"});
}

}  // namespace
}  // namespace troupe::app

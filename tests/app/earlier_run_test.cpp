// What an earlier build left on disk is read, verified and gone on with (tests/golden/earlier).
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/folder_files.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace troupe::app {
namespace {

using Words = std::vector<std::string>;

/// Works in a folder that holds what an archive of tests/golden/earlier holds: paths in it are relative, and the
/// times of files, which the dataset index compares, are those of the earlier build.
class EarlierRunTest : public ::testing::Test {
 protected:
  void unpack(const std::string& archive) {
    ASSERT_TRUE(succeeded(testing::run_program(
        {"-xzf", std::string(TROUPE_SOURCE_DIR) + "/tests/golden/earlier/" + archive, "--no-same-owner"},
        {.program = "/usr/bin/tar", .cwd = dir_.path(), .env = {}})));
  }
  ProgramEnd troupe(const Words& words) const {
    return testing::run_program(words, {.cwd = dir_.path(), .env = {}, .deadline = std::chrono::seconds(120)});
  }
  /// The only run of a job, as a path relative to the folder.
  std::string run_of(const std::string& job) const {
    std::filesystem::directory_iterator runs(dir_ / ("runs/" + job));
    return "runs/" + job + "/" + runs->path().filename().string();
  }
  /// The newest checkpoint's weights are, byte for byte, what the earlier build exported from it.
  void expect_exported(const std::string& job) {
    unpack("exported.tar.gz");
    ASSERT_TRUE(succeeded(troupe({"export", run_of(job), "--out", "exported-now"})));
    const auto before = files_of(dir_ / ("exported/" + job), ".safetensors");
    EXPECT_FALSE(before.empty());
    EXPECT_TRUE(before == files_of(dir_ / "exported-now", ".safetensors"));
  }
  void expect_verified(const std::string& job, const std::string& counts) const {
    expect_end(troupe({"verify", run_of(job)}), 0, {counts});
  }
  /// Trains from step 4 to step 6 in the same run directory.
  void go_on(const std::string& config) const {
    expect_end(troupe({"run", config, "training.steps=6", "--resume", "auto"}), 0, {"resuming at step 4"});
  }

  testing::ScratchFolder dir_;
};

TEST_F(EarlierRunTest, AFineTuningRunIsVerifiedExportedAndGoneOnWith) {
  ASSERT_NO_FATAL_FAILURE(unpack("fine_tuning.tar.gz"));
  ASSERT_NO_FATAL_FAILURE(expect_verified("earlier", "trained 16  void 0  lost 0  doubled 0"));
  ASSERT_NO_FATAL_FAILURE(expect_exported("earlier"));
  ASSERT_NO_FATAL_FAILURE(go_on("job.yaml"));
  expect_verified("earlier", "trained 24  void 0  lost 0  doubled 0");
}

TEST_F(EarlierRunTest, AdaptersAndWhatTheyWereTrainedOnAreReadByNameAndGoneOnWith) {
  ASSERT_NO_FATAL_FAILURE(unpack("fine_tuning.tar.gz"));  // their dataset
  ASSERT_NO_FATAL_FAILURE(unpack("adapters.tar.gz"));
  ASSERT_NO_FATAL_FAILURE(expect_verified("adapters", "trained 16  void 0  lost 0  doubled 0"));
  ASSERT_NO_FATAL_FAILURE(expect_exported("adapters"));
  ASSERT_NO_FATAL_FAILURE(go_on("adapters.yaml"));
  expect_verified("adapters", "trained 24  void 0  lost 0  doubled 0");
  // the pair: a new job that begins at the checkpoint of the whole model, as the earlier one did
  ASSERT_TRUE(succeeded(troupe({"run", "adapters.yaml", "training.steps=2", "--resume", "never"})));
}

TEST_F(EarlierRunTest, ItsFeatureCacheServesANewRunAndItsDatasetIndexIsLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(unpack("fine_tuning.tar.gz"));
  const auto index = files_of(dir_ / "data/.troupe/index", ".idx");
  const auto features = files_of(dir_ / "features", ".safetensors");
  ASSERT_EQ(index.size(), 2u);
  ASSERT_EQ(features.size(), 2u);
  ASSERT_TRUE(succeeded(troupe({"run", "job.yaml", "--resume", "never", "data.index.build=auto"})));
  // of an earlier version: the new one lies in the cache folder
  EXPECT_TRUE(index == files_of(dir_ / "data/.troupe/index", ".idx"));
  EXPECT_TRUE(features == files_of(dir_ / "features", ".safetensors")) << "features were computed again";
}

TEST_F(EarlierRunTest, AnOnPolicyRunIsVerifiedExportedAndGoneOnWith) {
  ASSERT_NO_FATAL_FAILURE(unpack("reinforcement_learning.tar.gz"));
  ASSERT_NO_FATAL_FAILURE(expect_verified("earlier-ppo", "env_steps 2048"));
  ASSERT_NO_FATAL_FAILURE(expect_exported("earlier-ppo"));
  ASSERT_NO_FATAL_FAILURE(go_on(run_of("earlier-ppo") + "/config.resolved.yaml"));
  expect_verified("earlier-ppo", "env_steps 3072");
}

TEST_F(EarlierRunTest, AnOffPolicyRunAndItsReplayAreVerifiedExportedAndGoneOnWith) {
  ASSERT_NO_FATAL_FAILURE(unpack("reinforcement_learning.tar.gz"));
  ASSERT_NO_FATAL_FAILURE(expect_verified("earlier-sac", "produced 256 = resident 256 + evicted 0 + lost 0"));
  ASSERT_NO_FATAL_FAILURE(expect_exported("earlier-sac"));
  ASSERT_NO_FATAL_FAILURE(go_on(run_of("earlier-sac") + "/config.resolved.yaml"));
  expect_verified("earlier-sac", "produced 384 = resident 384 + evicted 0 + lost 0");
}

}  // namespace
}  // namespace troupe::app

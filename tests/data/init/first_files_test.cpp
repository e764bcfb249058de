// The files for every dataset that is here: they load, with the robot that was guessed.
#include "data/init/first_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "configs/loader.h"
#include "data/health/health_check.h"
#include "tests/data/shared_data.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

/// Every folder with meta/info.json and data below the golden cases and the recordings.
std::vector<std::string> datasets() {
  std::vector<std::string> found;
  for (const std::string& folder : {golden_data(), shared_data()}) {
    std::error_code absent;
    for (fs::recursive_directory_iterator it(folder, absent), end; it != end; it.increment(absent)) {
      if (it->path().filename() == "info.json" && it->path().parent_path().filename() == "meta")
        found.push_back(it->path().parent_path().parent_path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct Written {
  RobotGuess robot;
  LoadOutcome outcome;
};

Result<Written> write_and_load(const std::string& root, const fs::path& folder) {
  TROUPE_ASSIGN(const DatasetFacts facts, read_dataset_facts(root));
  Written out;
  TROUPE_ASSIGN(out.robot, guess_robot(facts));
  HealthOptions asked;
  asked.data = facts.root;
  asked.embodiment = out.robot.embodiment;
  asked.index.path = (folder / "index").string();
  TROUPE_ASSIGN(const HealthReport report, check_health(asked));
  judge_by_statistics(report, out.robot);
  TROUPE_ASSIGN(const JobGuess job, guess_job(report, out.robot, {.cores = 2, .memory_bytes = 8LL << 30}));
  const fs::path robot_file = folder / "robot.yaml";
  std::ofstream(robot_file) << robot_yaml(out.robot, report);
  const std::string text = job_yaml(job, report, robot_file.string());
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(text.find('\n', begin) - begin, 200u);
  std::ofstream(folder / "job.yaml") << text;
  out.outcome = load_job((folder / "job.yaml").string(), {});
  return out;
}

TEST(FirstFilesTest, EveryDatasetThatCanBeTrainedOnYieldsFilesThatLoad) {
  const auto roots = datasets();
  if (roots.empty()) GTEST_SKIP() << "neither " << golden_data() << " nor " << shared_data() << " has a dataset";
  int loaded = 0;
  for (const std::string& root : roots) {
    SCOPED_TRACE(root);
    testing::ScratchFolder folder;
    const auto written = write_and_load(root, folder.path());
    if (!written) {
      // a refusal says which dataset and why: metadata alone, tables without their videos
      EXPECT_THAT(written.error().message(), ::testing::HasSubstr(fs::path(root).filename().string()));
      std::cout << "refused " << written.error().message() << "\n";
      continue;
    }
    ++loaded;
    ASSERT_TRUE(written->outcome.config) << ::testing::PrintToString(written->outcome.errors);
    const JobConfig& job = written->outcome.config->job;
    EXPECT_TRUE(written->outcome.config->warnings.empty());
    const EmbodimentConfig& e = written->robot.embodiment;
    EXPECT_EQ(job.data.embodiment.views, e.views);
    EXPECT_EQ(job.data.embodiment.slices, e.slices);
    EXPECT_EQ(job.data.embodiment.action_keys, e.action_keys);
    EXPECT_TRUE(fs::path(job.data.sets[0].path).is_absolute());
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace troupe::data

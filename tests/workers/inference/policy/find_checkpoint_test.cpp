#include "workers/inference/policy/find_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/hub_home.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSnapshot = "home/.cache/huggingface/hub/models--me--policy/snapshots/abc/";

TEST(FindCheckpointTest, AnAbsentRepositoryIsAnsweredWithTheLineThatDownloadsIt) {
  const testing::HubHome home;
  const auto place = find_checkpoint("me/policy", home / "runs");
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message(), HasSubstr("hf download me/policy"));
}

TEST(FindCheckpointTest, ARepositoryOfTheCacheThatIsNoPolicyIsNotDownloadedAgain) {
  const testing::HubHome home;
  home.put(kSnapshot + "model.safetensors");
  const auto place = find_checkpoint("me/policy", home / "runs");
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message(), HasSubstr("me/policy is in the Hugging Face cache as " + (home / "home")));
  EXPECT_THAT(place.error().message(), Not(HasSubstr("hf download")));
}

TEST(FindCheckpointTest, ACheckpointOfARunIsFoundByTheRunsName) {
  const testing::HubHome home;
  home.put("runs/job/20261130-000000-0000/config.resolved.yaml");
  home.put("runs/job/20261130-000000-0000/checkpoints/best/manifest.json");
  const auto place = find_checkpoint("job/checkpoints/best", home / "runs");
  ASSERT_TRUE(place) << place.error().message();
  const std::string run = std::filesystem::canonical(home / "runs/job/20261130-000000-0000");
  EXPECT_EQ(place->run, run);
  EXPECT_EQ(place->folder, run + "/checkpoints/best");
  EXPECT_THAT(find_checkpoint("job/checkpoints/worst", home / "runs").error().message(),
              HasSubstr("run " + run + " has no checkpoint 'worst'"));
}

}  // namespace
}  // namespace troupe::workers

#include "workers/inference/policy/find_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace troupe::workers

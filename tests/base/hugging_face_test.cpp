#include "base/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hub_home.h"

namespace troupe::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::HubHome;
using ::testing::Not;

const std::string kModel = "home/.cache/huggingface/hub/models--me--policy/snapshots/abc";

TEST(FindModelFilesTest, APathIsTakenAsItIs) {
  const HubHome home;
  const std::string file = home.put("weights/model.safetensors");
  EXPECT_EQ(*find_model_files(file), file);
  EXPECT_EQ(*find_model_files(home / "weights//"), home / "weights");
}

TEST(FindModelFilesTest, ANameIsTheSnapshotThatHasTheFile) {
  const HubHome home;
  home.put(kModel + "/model.safetensors");
  EXPECT_EQ(*find_model_files("me/policy"), home / kModel);
  EXPECT_EQ(*find_model_files("me/policy/model.safetensors"), home / (kModel + "/model.safetensors"));
  const std::string vae = home.put("home/.cache/huggingface/hub/models--me--policy/snapshots/def/vae/a.safetensors");
  EXPECT_EQ(*find_model_files("me/policy/vae/a.safetensors"), vae);
}

TEST(FindModelFilesTest, WhatIsNowhereIsAnsweredWithTheLineThatDownloadsIt) {
  const HubHome home;
  struct Case {
    const char* name;
    const char* line;
  };
  for (const Case& c : {Case{"Wan-AI/Wan2.2-TI2V-5B", "\n  hf download Wan-AI/Wan2.2-TI2V-5B"},
                        Case{"google/umt5-xxl/spiece.model", "\n  hf download google/umt5-xxl spiece.model"},
                        Case{"me/policy/text/encoder", "\n  hf download me/policy --include 'text/encoder/*'"}}) {
    const auto absent = find_model_files(c.name);
    ASSERT_FALSE(absent) << c.name;
    EXPECT_EQ(absent.error().code(), Errc::not_found);
    EXPECT_THAT(absent.error().message(), EndsWith(c.line));
    EXPECT_THAT(absent.error().message(), HasSubstr(home / "home/.cache/huggingface/hub/models--"));
  }
}

TEST(FindModelFilesTest, ANameThatNoFileSystemCanHoldIsAnError) {
  const HubHome home;
  home.put(kModel + "/model.safetensors");
  const auto absent = find_model_files("me/policy/" + std::string(300, 'a'));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Errc::not_found);
}

TEST(FindModelFilesTest, AFolderNamedLikeTheOwnerDoesNotHideTheCache) {
  const HubHome home;
  const std::string file = home.put(kModel + "/model.safetensors");
  home.put("work/me/notes.txt");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(home / "work");
  const auto found = find_model_files("me/policy/model.safetensors");
  std::filesystem::current_path(before);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(*found, file);
}

TEST(FindModelFilesTest, APathIntoAFolderThatIsThereIsNoName) {
  const HubHome home;
  const std::string there = home.put("weights/dit/a.safetensors");
  for (const std::string& path : {std::string("/absent/file"), std::string("./me/policy"), std::string("../me/policy"),
                                  std::string("file.safetensors"), home / "weights/vae"}) {
    const auto absent = find_model_files(path);
    ASSERT_FALSE(absent) << path;
    EXPECT_THAT(absent.error().message(), Not(HasSubstr("hf download"))) << path;
  }
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(home / ".");
  EXPECT_EQ(download_hint("weights/vae"), "");
  EXPECT_NE(download_hint("weighs/vae"), "");
  EXPECT_EQ(download_hint("checkpoints/vae"), "") << "no owner of models is called so";
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace troupe::base

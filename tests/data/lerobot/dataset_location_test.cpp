#include "data/lerobot/dataset_location.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/hub_home.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

class DatasetLocationTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name) const {
    folder_.put(name + "/meta/info.json");
    return folder_ / name;
  }
  std::string found(const std::string& id = "me/pick") {
    const auto folder = find_dataset(id);
    return folder ? *folder : folder.error().message();
  }

  testing::HubHome folder_;
};

TEST_F(DatasetLocationTest, AFolderIsTakenAsItIs) {
  const std::string folder = put("set");
  EXPECT_EQ(found(folder), folder);
  EXPECT_EQ(found(folder + "//"), folder);
}

TEST_F(DatasetLocationTest, LerobotsCacheComesBeforeTheHub) {
  const std::string hub = put("home/.cache/huggingface/hub/datasets--me--pick/snapshots/abc");
  EXPECT_EQ(found(), hub);
  const std::string lerobot_hub = put("home/.cache/huggingface/lerobot/hub/datasets--me--pick/snapshots/def");
  EXPECT_EQ(found(), lerobot_hub);
  const std::string local = put("home/.cache/huggingface/lerobot/me/pick");
  EXPECT_EQ(found(), local);
}

TEST_F(DatasetLocationTest, VariablesMoveTheCaches) {
  const std::string xdg = put("xdg/huggingface/lerobot/me/pick");
  ::setenv("XDG_CACHE_HOME", (folder_ / "xdg").c_str(), 1);
  EXPECT_EQ(found(), xdg);
  const std::string home = put("hf/lerobot/me/pick");
  ::setenv("HF_HOME", (folder_ / "hf").c_str(), 1);
  EXPECT_EQ(found(), home);
  const std::string own = put("mine/me/pick");
  ::setenv("HF_LEROBOT_HOME", (folder_ / "mine").c_str(), 1);
  EXPECT_EQ(found(), own);
  const std::string hub = put("hub/datasets--me--other/snapshots/1");
  ::setenv("HF_HUB_CACHE", (folder_ / "hub").c_str(), 1);
  EXPECT_EQ(found("me/other"), hub);
}

TEST_F(DatasetLocationTest, MainIsTheSnapshotElseTheNewest) {
  const std::string repository = "home/.cache/huggingface/hub/datasets--me--pick";
  const std::string old = put(repository + "/snapshots/aaa"), recent = put(repository + "/snapshots/bbb");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(old, now - std::chrono::hours(5));
  fs::last_write_time(recent, now - std::chrono::hours(1));
  fs::create_directories(folder_ / (repository + "/snapshots/ccc"));  // not a dataset
  EXPECT_EQ(found(), recent);
  fs::create_directories(folder_ / (repository + "/refs"));
  std::ofstream(folder_ / (repository + "/refs/main")) << "aaa\n";
  EXPECT_EQ(found(), old);
  std::ofstream(folder_ / (repository + "/refs/main")) << "gone";
  EXPECT_EQ(found(), recent);
  std::ofstream(folder_ / (repository + "/refs/main")) << "../../../secret";
  EXPECT_EQ(found(), recent);
}

TEST_F(DatasetLocationTest, TheErrorNamesEveryPlaceAndTheLineThatDownloads) {
  const auto absent = find_dataset("me/pick");
  EXPECT_EQ(absent.error().code(), Errc::not_found);
  const std::string cache = folder_ / "home/.cache/huggingface";
  for (const std::string& place : {std::string("\n  me/pick\n"), "\n  " + cache + "/lerobot/me/pick\n",
                                   "\n  " + cache + "/lerobot/hub/datasets--me--pick/snapshots/*\n",
                                   "\n  " + cache + "/hub/datasets--me--pick/snapshots/*\n",
                                   std::string("\n  hf download me/pick --repo-type dataset")}) {
    EXPECT_NE(absent.error().message().find(place), std::string::npos) << place << absent.error().message();
  }
}

TEST_F(DatasetLocationTest, WhatIsNoIdIsOnlyAFolder) {
  for (const char* text : {"/nonexistent", "a/b/c", "../x", "pusht", "a b/c", "./x/"}) {
    const auto absent = find_dataset(text);
    ASSERT_FALSE(absent) << text;
    EXPECT_EQ(absent.error().code(), Errc::not_found);
    EXPECT_NE(absent.error().message().find("/meta/info.json does not exist"), std::string::npos)
        << absent.error().message();
  }
}

}  // namespace
}  // namespace troupe::data

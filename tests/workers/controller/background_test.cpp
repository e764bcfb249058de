#include "workers/controller/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <vector>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BackgroundThreadTest, WorkIsDoneInOrderAndToldWhereItIsCollected) {
  BackgroundThread background;
  std::promise<void> disk;
  std::vector<int> done, told;
  background.run(
      [&, free = disk.get_future().share()]() -> Result<void> {
        free.wait();
        done.push_back(1);
        return {};
      },
      [&](const Result<void>& result) { told.push_back(result ? 1 : -1); });
  background.run(
      [&]() -> Result<void> {
        done.push_back(2);
        return Error{Errc::resource_exhausted, "full"};
      },
      [&](const Result<void>& result) { told.push_back(result ? 2 : -2); });
  EXPECT_EQ(background.waiting(), 2u);
  EXPECT_FALSE(background.wait_idle(0ms)) << "the disk hangs";
  background.collect();
  EXPECT_THAT(told, IsEmpty());
  disk.set_value();
  ASSERT_TRUE(background.wait_idle(60s));
  background.collect();
  background.collect();
  EXPECT_THAT(done, ElementsAre(1, 2));
  EXPECT_THAT(told, ElementsAre(1, -2));
}

TEST(BackgroundThreadTest, AnExceptionIsAFailureOfThatPieceAlone) {
  BackgroundThread background;
  std::vector<std::string> told;
  const auto tell = [&](const Result<void>& result) { told.push_back(result ? "" : result.error().message()); };
  background.run([]() -> Result<void> { throw std::runtime_error("broken"); }, tell);
  background.run([]() -> Result<void> { return {}; }, tell);
  ASSERT_TRUE(background.wait_idle(60s));
  background.collect();
  EXPECT_THAT(told, ElementsAre("broken", ""));
}

TEST(BackgroundThreadTest, WhatWaitsIsDoneBeforeItEnds) {
  int done = 0;
  {
    BackgroundThread background;
    for (int i = 0; i < 100; ++i) {
      background.run(
          [&done]() -> Result<void> {
            ++done;
            return {};
          },
          {});
    }
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace troupe::workers

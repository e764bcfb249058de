// A file system that does not answer: scripted with the fault point "read", which blocks the reading thread for an
// hour.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/fault.h"
#include "base/log.h"
#include "data/video/bad_clip.h"
#include "data/video/read_thread.h"
#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

using namespace std::chrono_literals;

ClipDecoder::Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

class StalledReadTest : public ::testing::Test {
 protected:
  // once and before any thread: ThreadSanitizer does not see into the log's own first use
  static void SetUpTestSuite() { log::configure("test", ""); }
  void SetUp() override {
    encode_texture(path_, 40, {.gop = 10});
    encode_texture(folder_ / "good.mp4", 40, {.gop = 10});
  }
  void TearDown() override { ASSERT_TRUE(arm_faults("")); }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "slow.mp4";
};

TEST_F(StalledReadTest, AnOpenThatHangsEndsAtTheDeadlineAndCostsOneClip) {
  ClipDecoder decoder;
  ASSERT_TRUE(arm_faults("read@slow:stall"));
  const auto stalled = yuv_hashes(decoder, path_, {3}, {}, in(50ms));
  EXPECT_EQ(stalled.error().code(), Errc::deadline_exceeded);
  EXPECT_EQ(stalled.error().message().find(path_), 0u) << stalled.error().message();
  const auto clip = find_bad_clip(stalled.error().message());
  ASSERT_TRUE(clip) << stalled.error().message();
  EXPECT_EQ(clip->file, path_);
  EXPECT_EQ(clip->group, -1);
  EXPECT_TRUE(yuv_hashes(decoder, folder_ / "good.mp4", {3}));
  EXPECT_TRUE(yuv_hashes(decoder, path_, {3}));
}

TEST_F(StalledReadTest, AReadThatHangsEndsAtTheDeadlineAndTheDecoderGoesOn) {
  ClipDecoder decoder({.cached_reads = false});
  const auto expected = yuv_hashes(decoder, path_, {3, 27});
  const int stuck = ReadThread::stuck();
  ASSERT_TRUE(arm_faults("read@slow:stall"));
  EXPECT_EQ(yuv_hashes(decoder, path_, {3, 27}, {}, in(50ms)).error().code(), Errc::deadline_exceeded);
  EXPECT_EQ(decoder.counters().retries, 0);
  EXPECT_EQ(ReadThread::stuck(), stuck + 1);
  EXPECT_EQ(yuv_hashes(decoder, path_, {3, 27}).value(), *expected);
}

TEST_F(StalledReadTest, AFailingReadIsNamedAndTriedNoSecondTimeByItself) {
  ClipDecoder decoder({.cached_reads = false});
  ASSERT_TRUE(yuv_hashes(decoder, path_, {3}));
  ASSERT_TRUE(arm_faults("read@slow:fail"));
  EXPECT_NE(yuv_hashes(decoder, path_, {3}).error().message().find("slow"), std::string::npos);
  EXPECT_TRUE(yuv_hashes(decoder, path_, {3}));
}

TEST_F(StalledReadTest, AClipBeyondTheSoftLimitIsCountedAndStillDelivered) {
  ClipDecoder decoder({.soft_limit = 0ms});
  EXPECT_TRUE(yuv_hashes(decoder, path_, {3}));
  EXPECT_EQ(decoder.counters().slow_clips, 1);
}

TEST_F(StalledReadTest, ADamagedGroupIsNamedInTheError) {
  damage_frame(path_, 25);
  ClipDecoder decoder;
  const auto read = yuv_hashes(decoder, path_, {2, 27});
  const auto clip = find_bad_clip(read.error().with("training sample 7").message());
  ASSERT_TRUE(clip) << read.error().message();
  EXPECT_EQ(clip->file, path_);
  EXPECT_EQ(clip->group, 20);
  EXPECT_EQ(decoder.counters().retries, 1);
  EXPECT_EQ(decoder.counters().contexts_opened, 2);  // the second attempt had a fresh one
}

TEST(ReadThreadTest, WorkIsDoneInOrderAndItsResultComesBack) {
  ReadThread thread;
  int calls = 0;
  for (int i = 0; i < 100; ++i) {
    const auto result = thread.call<int>([&calls] { return Result<int>(++calls); }, soon(), "x", "counting");
    EXPECT_EQ(*result, i + 1);
  }
  const auto failed = thread.call<int>(
      [] {
        return Result<int>(Error{Errc::not_found, "gone"});
      },
      soon(), "x", "looking");
  EXPECT_EQ(failed.error().message(), "gone");
}

TEST(ReadThreadTest, AnAbandonedThreadIsForgottenWhenItComesBack) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  const auto gate = std::make_shared<Gate>();
  const int before = ReadThread::stuck();
  ReadThread thread;
  const auto late = thread.call<int>(
      [gate] {
        std::unique_lock lock(gate->mutex);
        gate->changed.wait(lock, [&] { return gate->open; });
        return Result<int>(1);
      },
      in(20ms), "file", "reading");
  EXPECT_EQ(late.error().code(), Errc::deadline_exceeded);
  EXPECT_EQ(late.error().message(), "file: the deadline passed while reading");
  EXPECT_EQ(ReadThread::stuck(), before + 1);
  EXPECT_EQ(thread.call<int>([] { return Result<int>(2); }, soon(), "file", "reading").value(), 2);
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
    gate->changed.notify_all();
  }
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (ReadThread::stuck() != before && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(ReadThread::stuck(), before);
}

TEST(BadClipTest, TheClipAtTheEndOfATextIsFound) {
  const Error error = with_bad_clip({Errc::data_loss, "a (b).mp4: broken"}, {"/x, group 3/a (b).mp4", 250});
  EXPECT_EQ(error.code(), Errc::data_loss);
  const auto clip = find_bad_clip(error.with("position 3").message());
  ASSERT_TRUE(clip);
  EXPECT_EQ(clip->file, "/x, group 3/a (b).mp4");
  EXPECT_EQ(clip->group, 250);
  for (const char* text : {"", "no clip", "x (clip a.mp4, group 3", "x (clip a.mp4, group )", "x (clip , group 3)",
                           "x (clip a.mp4, group 3x)", "(clip a, group 1)"}) {
    EXPECT_FALSE(find_bad_clip(text)) << text;
  }
}

}  // namespace
}  // namespace troupe::data

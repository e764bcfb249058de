#include "device/host_device.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace troupe::device {
namespace {

TEST(HostDeviceTest, MemoryIsZeroAlignedAndReleasedWithTheLastPointer) {
  const auto memory = host_device().allocate(1000);
  EXPECT_EQ(memory->bytes(), 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->address()) % kMemoryAlignment, 0U);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(memory->address()[i], std::byte{0});
  EXPECT_EQ(host_device().allocate(0)->bytes(), 0);
}

TEST(HostDeviceTest, MemoryBehindIsAFileWithoutAName) {
  const testing::ScratchFolder folder("/var/tmp");
  const auto memory = host_device().allocate_behind(10'000, folder.path()).value();
  EXPECT_EQ(memory->bytes(), 10'000);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(memory->address()[i], std::byte{0});
  memory->address()[9'999] = std::byte{7};
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(host_device().allocate_behind(0, folder.path()).value()->bytes(), 0);
  EXPECT_EQ(host_device().allocate_behind(1, "/proc/none").error().code(), Errc::not_found);
}

TEST(HostDeviceTest, AComputeStreamWorksInTheCallersThreadAtOnce) {
  const auto stream = host_device().make_stream(StreamUse::compute);
  std::thread::id worked;
  stream->enqueue([&] { return worked = std::this_thread::get_id(), Result<void>(); });
  EXPECT_EQ(worked, std::this_thread::get_id());
}

TEST(HostDeviceTest, ATransferStreamWorksBesideTheCallerInOrder) {
  const auto stream = host_device().make_stream(StreamUse::transfer);
  std::vector<int> order;
  std::thread::id worked;
  for (int i = 0; i < 100; ++i) {
    stream->enqueue([&, i] {
      worked = std::this_thread::get_id();
      order.push_back(i);
      return Result<void>();
    });
  }
  ASSERT_TRUE(stream->synchronize());
  EXPECT_NE(worked, std::this_thread::get_id());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(HostDeviceTest, EventsOrderStreams) {
  const auto transfers = host_device().make_stream(StreamUse::transfer);
  const auto compute = host_device().make_stream(StreamUse::compute);
  const auto arrived = host_device().make_event(), used = host_device().make_event();
  int slot = -1;  // unguarded: the events are its order
  for (int round = 0; round < 200; ++round) {
    transfers->wait(*used);
    transfers->enqueue([&, round] { return slot = round, Result<void>(); });
    transfers->record(*arrived);
    compute->wait(*arrived);
    compute->enqueue([&, round] {
      EXPECT_EQ(slot, round);
      return Result<void>();
    });
    compute->record(*used);
  }
  ASSERT_TRUE(transfers->synchronize());
}

TEST(HostDeviceTest, AFailureSkipsWhatFollowsReachesWaitersAndIsReturnedOnce) {
  const auto transfers = host_device().make_stream(StreamUse::transfer);
  const auto compute = host_device().make_stream(StreamUse::compute);
  const auto event = host_device().make_event();
  std::atomic<int> ran{0};
  transfers->enqueue([] { return Result<void>(Error{Errc::aborted, "a peer was lost"}); });
  transfers->enqueue([&] { return ++ran, Result<void>(); });
  transfers->record(*event);
  compute->wait(*event);
  compute->enqueue([&] { return ++ran, Result<void>(); });
  EXPECT_EQ(compute->synchronize().error().message(), "a peer was lost");
  EXPECT_EQ(transfers->synchronize().error().code(), Errc::aborted);
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(compute->synchronize());
  EXPECT_TRUE(transfers->synchronize());
  compute->enqueue([&] { return ++ran, Result<void>(); });
  transfers->enqueue([&] { return ++ran, Result<void>(); });
  ASSERT_TRUE(transfers->synchronize());
  EXPECT_EQ(ran, 2);
}

TEST(HostDeviceTest, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  const auto stream = host_device().make_stream(StreamUse::compute);
  stream->wait(*host_device().make_event());
  EXPECT_TRUE(stream->synchronize());
}

}  // namespace
}  // namespace troupe::device

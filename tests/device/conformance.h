#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "tests/support/scratch_folder.h"

// What every device does, through device/device.h alone. A test program includes this once and instantiates
// DeviceConformanceTest with its devices.
namespace troupe::device {

struct DeviceUnderTest {
  std::string name;
  std::function<std::shared_ptr<Device>()> make;
  /// After each test, when all that it made is gone.
  std::function<void()> check = [] {};
};
inline std::ostream& operator<<(std::ostream& out, const DeviceUnderTest& device) { return out << device.name; }

using Bytes = std::vector<std::byte>;

/// 0, 1, 2, ... from `first` on.
inline void fill_counting(std::span<std::byte> bytes, int first = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
}

inline Bytes counting(std::size_t bytes, int first = 0) {
  Bytes values(bytes);
  fill_counting(values, first);
  return values;
}

inline std::span<std::byte> host_bytes(Memory& memory) {
  return {memory.address(), static_cast<std::size_t>(memory.bytes())};
}

/// What lies there when the stream has done its work.
inline Bytes read(Stream& stream, const std::byte* from, std::int64_t bytes) {
  Bytes values(static_cast<std::size_t>(bytes), std::byte{0xee});
  stream.copy(values.data(), from, bytes);
  EXPECT_TRUE(stream.synchronize());
  return values;
}

class DeviceConformanceTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  ~DeviceConformanceTest() override {
    transfers_.reset();
    compute_.reset();
    device_.reset();
    GetParam().check();
  }
  Device& device() { return *device_; }
  Stream& compute() { return *compute_; }
  Stream& transfers() { return *transfers_; }

 private:
  std::shared_ptr<Device> device_ = GetParam().make();
  std::unique_ptr<Stream> compute_ = device_->make_stream(StreamUse::compute);
  std::unique_ptr<Stream> transfers_ = device_->make_stream(StreamUse::transfer);
};

TEST_P(DeviceConformanceTest, MemoryIsZeroAndAligned) {
  const auto memory = device().allocate(1000);
  EXPECT_EQ(memory->bytes(), 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->address()) % kMemoryAlignment, 0U);
  EXPECT_EQ(read(compute(), memory->address(), 1000), Bytes(1000));
}

TEST_P(DeviceConformanceTest, TheHostReachesPinnedMemoryAndMemoryBehind) {
  const testing::ScratchFolder folder("/var/tmp");
  for (const auto& memory : {device().allocate_pinned(1000), device().allocate_behind(1000, folder.path()).value()}) {
    EXPECT_EQ(memory->bytes(), 1000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->address()) % kMemoryAlignment, 0U);
    EXPECT_THAT(host_bytes(*memory), ::testing::Each(std::byte{0}));
    fill_counting(host_bytes(*memory));
    EXPECT_EQ(read(transfers(), memory->address(), 1000), counting(1000));
  }
}

TEST_P(DeviceConformanceTest, NoBytesHaveANullAddress) {
  EXPECT_EQ(device().allocate(0)->address(), nullptr);
  EXPECT_EQ(device().allocate_pinned(0)->address(), nullptr);
  EXPECT_EQ(device().allocate_behind(0, "/var/tmp").value()->address(), nullptr);
  EXPECT_TRUE(device().pin({}));
  compute().copy(nullptr, nullptr, 0);
  compute().clear(nullptr, 0);
  EXPECT_TRUE(compute().synchronize());
}

TEST_P(DeviceConformanceTest, CopiesAndFillsFollowEachOtherThroughAllMemory) {
  for (Stream* stream : {&compute(), &transfers()}) {
    const auto from = device().allocate_pinned(1000), back = device().allocate_pinned(1000);
    const auto one = device().allocate(1000), other = device().allocate(1000);
    const auto plain = counting(500, 7);
    fill_counting(host_bytes(*from));
    stream->copy(one->address(), from->address(), 1000);
    stream->copy(one->address() + 500, plain.data(), 500);
    stream->copy(other->address(), one->address(), 1000);
    stream->clear(one->address(), 1000);
    stream->clear(other->address() + 10, 20);
    stream->copy(back->address(), other->address(), 1000);
    ASSERT_TRUE(stream->synchronize());
    auto expected = counting(1000);
    std::copy(plain.begin(), plain.end(), expected.begin() + 500);
    std::fill_n(expected.begin() + 10, 20, std::byte{0});
    EXPECT_THAT(host_bytes(*back), ::testing::ElementsAreArray(expected));
    EXPECT_EQ(read(*stream, one->address(), 1000), Bytes(1000));
  }
}

TEST_P(DeviceConformanceTest, MemoryOfOthersIsPinnedUntilTheHandleGoes) {
  auto host = counting(1000);
  const auto memory = device().allocate(1000);
  for (int round = 0; round < 2; ++round) {
    const auto pin = device().pin(host).value();
    transfers().copy(memory->address(), host.data(), 1000);
    ASSERT_TRUE(transfers().synchronize());
  }
  EXPECT_EQ(read(transfers(), memory->address(), 1000), host);
}

TEST_P(DeviceConformanceTest, EventsOrderStreams) {
  constexpr int kRounds = 200;
  const auto arrived = device().make_event(), used = device().make_event();
  const auto source = device().allocate_pinned(kRounds), results = device().allocate_pinned(kRounds);
  const auto slot = device().allocate(1);
  fill_counting(host_bytes(*source));
  for (int round = 0; round < kRounds; ++round) {
    transfers().wait(*used);
    transfers().copy(slot->address(), source->address() + round, 1);
    transfers().record(*arrived);
    compute().wait(*arrived);
    compute().copy(results->address() + round, slot->address(), 1);
    compute().clear(slot->address(), 1);
    compute().record(*used);
  }
  ASSERT_TRUE(transfers().synchronize());
  ASSERT_TRUE(compute().synchronize());
  EXPECT_THAT(host_bytes(*results), ::testing::ElementsAreArray(counting(kRounds)));
}

TEST_P(DeviceConformanceTest, AFailureSkipsWhatFollowsReachesWaitersAndIsReturnedOnce) {
  const auto event = device().make_event();
  const auto memory = device().allocate(8);
  const auto ones = counting(8, 1);
  std::atomic<int> ran{0};
  transfers().enqueue([] { return Result<void>(Error{Errc::aborted, "a peer was lost"}); });
  transfers().enqueue([] { return Result<void>(Error{Errc::internal, "a later failure"}); });
  transfers().enqueue([&] { return ++ran, Result<void>(); });
  transfers().copy(memory->address(), ones.data(), 8);
  transfers().record(*event);
  compute().wait(*event);
  compute().enqueue([&] { return ++ran, Result<void>(); });
  compute().copy(memory->address(), ones.data(), 8);
  EXPECT_EQ(compute().synchronize().error().message(), "a peer was lost");
  EXPECT_EQ(transfers().synchronize().error().code(), Errc::aborted);
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(compute().synchronize());
  EXPECT_TRUE(transfers().synchronize());
  EXPECT_EQ(read(compute(), memory->address(), 8), Bytes(8));
  compute().enqueue([&] { return ++ran, Result<void>(); });
  transfers().enqueue([&] { return ++ran, Result<void>(); });
  ASSERT_TRUE(transfers().synchronize());
  EXPECT_EQ(ran, 2);
}

TEST_P(DeviceConformanceTest, AnEventForgetsTheFailureWhenItIsRecordedAgain) {
  const auto event = device().make_event();
  transfers().enqueue([] { return Result<void>(Error{Errc::aborted, "a peer was lost"}); });
  transfers().record(*event);
  EXPECT_FALSE(transfers().synchronize());
  transfers().record(*event);
  compute().wait(*event);
  EXPECT_TRUE(compute().synchronize());
}

TEST_P(DeviceConformanceTest, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  const auto event = device().make_event();
  compute().wait(*event);
  transfers().wait(*event);
  EXPECT_TRUE(compute().synchronize());
  EXPECT_TRUE(transfers().synchronize());
}

}  // namespace troupe::device

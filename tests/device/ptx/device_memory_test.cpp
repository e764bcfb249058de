#include "tests/device/ptx/device_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::device::ptx {
namespace {

TEST(DeviceMemoryTest, AddressesAreAlignedApartAndFaultOnTheHost) {
  DeviceMemory memory;
  const std::uint64_t a = memory.allocate(1000).value(), b = memory.allocate(1).value();
  EXPECT_EQ(a % 256, 0U);
  EXPECT_NE(a % 512, 0U);
  EXPECT_GE(b, a + 1000 + 256);
  EXPECT_DEATH((void)*reinterpret_cast<volatile int*>(a), "");
}

TEST(DeviceMemoryTest, BytesCountAsWrittenOnceTheyAre) {
  DeviceMemory memory;
  const std::uint64_t a = memory.allocate(100).value();
  const std::vector<std::byte> seven(7, std::byte{7});
  EXPECT_FALSE(*memory.is_written(a + 60, 7));
  ASSERT_TRUE(memory.copy_in(a + 60, seven));
  EXPECT_TRUE(*memory.is_written(a + 60, 7));
  EXPECT_FALSE(*memory.is_written(a + 60, 8));
  std::vector<std::byte> back(7);
  ASSERT_TRUE(memory.copy_out(a + 60, back));
  EXPECT_EQ(back, seven);
  EXPECT_FALSE(memory.copy_out(a + 94, back));
  ASSERT_TRUE(memory.fill(a, std::byte{1}, 100));
  EXPECT_TRUE(*memory.is_written(a, 100));
}

TEST(DeviceMemoryTest, WhatIsFreedStaysFreed) {
  DeviceMemory memory;
  const std::uint64_t a = memory.allocate(100).value();
  EXPECT_FALSE(memory.free(a + 1));
  ASSERT_TRUE(memory.free(a));
  EXPECT_FALSE(memory.free(a));
  EXPECT_FALSE(memory.fill(a, std::byte{1}, 1));
  EXPECT_NE(memory.allocate(100).value(), a);
  EXPECT_TRUE(memory.find(a)->is_freed);
}

TEST(DeviceMemoryTest, HostMemoryIsReachedOnceItIsMapped) {
  DeviceMemory memory;
  std::vector<std::byte> pinned(64);
  const auto at = reinterpret_cast<std::uint64_t>(pinned.data());
  EXPECT_EQ(memory.find(at), nullptr);
  ASSERT_TRUE(memory.map_host(pinned));
  EXPECT_FALSE(memory.map_host(std::span(pinned).subspan(8)));
  ASSERT_NE(memory.find(at + 63), nullptr);
  EXPECT_EQ(memory.find(at + 64), nullptr);
  ASSERT_TRUE(memory.fill(at, std::byte{9}, 64));
  EXPECT_EQ(std::count(pinned.begin(), pinned.end(), std::byte{9}), 64);
  ASSERT_TRUE(memory.unmap_host(pinned.data()));
  EXPECT_EQ(memory.find(at), nullptr);
}

}  // namespace
}  // namespace troupe::device::ptx

#include "device/host_device.h"

#include <filesystem>
#include <thread>

#include "tests/device/conformance.h"

namespace troupe::device {
namespace {

std::shared_ptr<Device> the_host() {
  return {&host_device(), [](Device*) {}};
}
INSTANTIATE_TEST_SUITE_P(Host, DeviceConformanceTest, ::testing::Values(DeviceUnderTest{"host", the_host}));

TEST(HostDeviceTest, TheHostReachesItsMemory) {
  EXPECT_TRUE(host_device().is_host());
  const auto memory = host_device().allocate(1000);
  EXPECT_THAT(host_bytes(*memory), ::testing::Each(std::byte{0}));
}

TEST(HostDeviceTest, MemoryBehindIsAFileWithoutAName) {
  const testing::ScratchFolder folder("/var/tmp");
  const auto memory = host_device().allocate_behind(10'000, folder.path()).value();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
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

TEST(HostDeviceTest, TheEndOfAStreamWaitsForItsWork) {
  bool worked = false;
  host_device().make_stream(StreamUse::transfer)->enqueue([&] { return worked = true, Result<void>(); });
  EXPECT_TRUE(worked);
}

}  // namespace
}  // namespace troupe::device

#include "workers/node/inventory.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "tests/support/scratch_folder.h"
#include "workers/node/cgroup.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ + "/pod/box"); }
  void write(const std::string& path, const std::string& text) { std::ofstream(root_ + path) << text; }
  const ScratchFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(CgroupTest, WithoutFilesThereIsNoLimit) {
  const auto limits = read_cgroup_limits(root_, {.unified = "/pod/box"});
  EXPECT_FALSE(limits.cpus);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_EQ(read_oom_kills(root_, {.unified = "/pod/box"}), 0U);
}

TEST_F(CgroupTest, TheTightestOfAllLevelsHolds) {
  write("/cpu.max", "max 100000\n");
  write("/pod/cpu.max", "150000 100000\n");
  write("/pod/box/cpu.max", "800000 100000\n");
  write("/pod/memory.max", "max\n");
  write("/pod/box/memory.max", "1073741824\n");
  const auto limits = read_cgroup_limits(root_, {.unified = "/pod/box"});
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 1LL << 30);
  EXPECT_FALSE(read_cgroup_limits(root_, {.unified = "/"}).cpus);
}

TEST_F(CgroupTest, DamagedFilesAreNoLimit) {
  write("/pod/cpu.max", "many\n");
  write("/pod/memory.max", "-5\n");
  const auto limits = read_cgroup_limits(root_, {.unified = "/pod"});
  EXPECT_FALSE(limits.cpus);
  EXPECT_FALSE(limits.memory_bytes);
}

TEST_F(CgroupTest, OomKillsAreCounted) {
  write("/pod/memory.events", "low 0\nhigh 3\nmax 9\noom 2\noom_kill 2\noom_group_kill 1\n");
  EXPECT_EQ(read_oom_kills(root_, {.unified = "/pod"}), 2U);
}

TEST_F(CgroupTest, MemoryInUseIsThatOfTheLevelWithTheLimit) {
  write("/pod/memory.max", "4096000\n");
  write("/pod/memory.current", "3000000\n");
  write("/pod/memory.stat", "anon 1\ninactive_file 1000000\n");
  write("/pod/box/memory.current", "7\n");
  EXPECT_EQ(read_cgroup_limits(root_, {.unified = "/pod/box"}).memory_used_bytes, 2'000'000);
}

TEST_F(CgroupTest, LimitsOfVersion1AreRead) {
  for (const char* controller : {"memory", "cpu"}) fs::create_directories(root_ + "/" + controller + "/pod/box");
  write("/cpu/cpu.cfs_quota_us", "-1\n");
  write("/cpu/pod/cpu.cfs_quota_us", "150000\n");
  write("/cpu/pod/cpu.cfs_period_us", "100000\n");
  write("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/memory/pod/box/memory.limit_in_bytes", "1073741824\n");
  write("/memory/pod/box/memory.usage_in_bytes", "5000000\n");
  write("/memory/pod/box/memory.stat", "inactive_file 1\ntotal_inactive_file 2000000\n");
  const auto limits = read_cgroup_limits(root_, {.memory = "/pod/box", .cpu = "/pod/box"});
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 1LL << 30);
  EXPECT_EQ(limits.memory_used_bytes, 3'000'000);
  EXPECT_FALSE(read_cgroup_limits(root_, {.memory = "/", .cpu = "/"}).memory_bytes);
}

TEST_F(CgroupTest, OomKillsOfVersion1AreCountedWhereTheGroupIsVisible) {
  fs::create_directories(root_ + "/memory");
  write("/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_EQ(read_oom_kills(root_, {.memory = "/docker/0815"}), 3U);
}

TEST_F(CgroupTest, GroupsAreFoundByController) {
  write("/own", "12:pids:/other\n9:cpu,cpuacct:/pod\n4:memory:/pod:a/box\n1:name=systemd:/x\n0::/slice\n");
  const auto paths = read_cgroup_paths(root_ + "/own");
  EXPECT_EQ(paths.cpu, "/pod");
  EXPECT_EQ(paths.memory, "/pod:a/box");
  EXPECT_EQ(paths.unified, "/slice");
  EXPECT_EQ(read_cgroup_paths(root_ + "/absent").unified, "/");
}

TEST(InventoryTest, DescribesThisMachine) {
  const NodeFacts facts = read_inventory("node/3");
  EXPECT_EQ(facts.snapshot.name, "node/3");
  EXPECT_GE(facts.snapshot.cpus, 1);
  EXPECT_LE(facts.snapshot.cpus, static_cast<std::int64_t>(std::thread::hardware_concurrency()));
  EXPECT_GT(facts.snapshot.memory_bytes, 64LL << 20);
  EXPECT_FALSE(facts.host.empty());
  EXPECT_EQ(facts.boot_id.size(), 36U);
  EXPECT_EQ(facts.boot_id, read_inventory("other").boot_id);
  const std::int64_t free = free_memory_bytes();
  EXPECT_GT(free, 0);
  EXPECT_LE(free, facts.snapshot.memory_bytes);
}

TEST(InventoryTest, CountsOnlyProcessorsThisProcessMayUse) {
  std::thread narrow([] {
    cpu_set_t mask, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(read_inventory("narrow").snapshot.cpus, 1);
  });
  narrow.join();
}

// Devices are read once a process, so each of these reads them in a process of its own, which prints what it found.
class DeviceInventoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  [[noreturn]] static void print_devices(const char* devices, const char* fails) {
    ::setenv("TROUPE_NVML", NVML_STANDIN, 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    ::setenv("TROUPE_STANDIN_DEVICES", devices, 1);
    ::setenv("TROUPE_STANDIN_NVML_FAILS", fails, 1);
    log::configure("test", "");
    std::string found = "devices:";
    for (const DeviceSnapshot& device : read_inventory("first").snapshot.devices)
      found += fmt::format(" {} {}", device.model, device.memory_bytes >> 20);
    found += fmt::format(" and again {}.", read_inventory("again").snapshot.devices.size());
    log::flush();
    std::fprintf(stderr, "%s\n", found.c_str());
    std::_Exit(0);
  }
};

TEST_F(DeviceInventoryTest, HasTheGpusAsPlansNameThem) {
  EXPECT_EXIT(print_devices("H200,A6000,A100:40,GB10:119", "0"), ::testing::ExitedWithCode(0),
              "devices: H200 143155 A6000 48640 A100 40960 GB10 121856 and again 4\\.");
}

TEST_F(DeviceInventoryTest, ADriverThatFailsIsAWarningOnce) {
  EXPECT_EXIT(print_devices("H200", "1"), ::testing::ExitedWithCode(0),
              "^[^\n]*warn[^\n]*GPUs of this machine are not used: nvmlInit_v2: [^\n]*\ndevices: and again 0\\.\n$");
}

}  // namespace
}  // namespace troupe::workers

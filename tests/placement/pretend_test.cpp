#include "placement/pretend.h"

#include <gmock/gmock.h>

namespace troupe::placement {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::string error(std::string_view text) {
  auto cluster = pretend_cluster(text);
  EXPECT_FALSE(cluster) << text;
  return cluster ? std::string() : cluster.error().message();
}

TEST(PretendTest, OneCountIsDevicesOfOneNode) {
  const auto cluster = pretend_cluster("8xH200");
  ASSERT_EQ(cluster->nodes.size(), 1u);
  ASSERT_EQ(cluster->nodes[0].devices.size(), 8u);
  EXPECT_EQ(cluster->nodes[0].devices[7].model, "H200");
  EXPECT_NEAR(static_cast<double>(cluster->nodes[0].devices[0].memory_bytes) / static_cast<double>(kGiB), 139.8, 0.01);
  EXPECT_EQ(cluster->nodes[0].cpus, 192);
}
TEST(PretendTest, TwoCountsAreNodesThenDevices) {
  const auto cluster = pretend_cluster("2x8xH100-80G");
  ASSERT_EQ(cluster->nodes.size(), 2u);
  EXPECT_EQ(cluster->nodes[1].name, "node1");
  EXPECT_EQ(cluster->nodes[1].devices.size(), 8u);
  EXPECT_EQ(cluster->nodes[1].devices[0].memory_bytes, 80 * kGiB);
}
TEST(PretendTest, CpuNodesHaveNoDevices) {
  const auto cluster = pretend_cluster("3xcpu16-64G");
  ASSERT_EQ(cluster->nodes.size(), 3u);
  EXPECT_EQ(cluster->nodes[2].cpus, 16);
  EXPECT_EQ(cluster->nodes[2].memory_bytes, 64 * kGiB);
  EXPECT_TRUE(cluster->nodes[2].devices.empty());
}
TEST(PretendTest, UnknownModelWithMemoryIsAccepted) {
  const auto cluster = pretend_cluster("l40s-48G");
  EXPECT_EQ(cluster->nodes[0].devices[0].model, "L40S");
  EXPECT_EQ(cluster->nodes[0].devices[0].memory_bytes, 48 * kGiB);
}
TEST(PretendTest, UnknownModelWithoutMemoryListsTheKnownOnes) {
  const std::string message = error("8xH300");
  for (const char* known : {"H100", "H200", "A100-40G", "A100-80G", "B200"}) EXPECT_THAT(message, HasSubstr(known));
  EXPECT_THAT(message, HasSubstr("Did you mean"));
}
TEST(PretendTest, A100NeedsItsMemory) { EXPECT_THAT(error("8xA100"), HasSubstr("A100-80G")); }
TEST(PretendTest, CpuNeedsItsMemory) { EXPECT_THAT(error("cpu16"), HasSubstr("memory")); }
TEST(PretendTest, CpuNeedsItsCores) { EXPECT_THAT(error("cpu-64G"), HasSubstr("number of cores")); }
TEST(PretendTest, MemoryNeedsItsUnit) { EXPECT_THAT(error("8xH100-80"), HasSubstr("80")); }
TEST(PretendTest, ThreeCountsAreRefused) { EXPECT_THAT(error("2x2x2xH100"), HasSubstr("3 counts")); }
TEST(PretendTest, EmptyTextIsRefused) { EXPECT_THAT(error(""), HasSubstr("no device model")); }
TEST(PretendTest, HugeCountsAreRefused) { EXPECT_THAT(error("99999xH100"), HasSubstr("above 4096")); }

}  // namespace
}  // namespace troupe::placement

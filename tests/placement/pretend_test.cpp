#include "placement/pretend.h"

#include <gmock/gmock.h>

#include <tuple>

#include "placement/known_devices.h"

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
TEST(PretendTest, KnownModelsNeedNoMemoryHoweverTheyAreSpelled) {
  for (const auto& [text, model, gib] : {std::tuple{"2xl40s", "L40S", 44.99},
                                         {"RTX 4090", "RTX4090", 23.99},
                                         {"rtx-4090", "RTX4090", 23.99},
                                         {"4xRTX 6000 Ada", "RTX6000Ada", 47.99},
                                         {"rtx_6000_ada", "RTX6000Ada", 47.99},
                                         {"8xRTX A6000", "A6000", 47.99},
                                         {"A6000", "A6000", 47.99},
                                         {"8xa100-40g", "A100", 40.0},
                                         {"8xA100-80G", "A100", 80.0},
                                         {"8XB200", "B200", 179.0},
                                         {"GB200", "GB200", 173.2}}) {
    const auto cluster = pretend_cluster(text);
    ASSERT_TRUE(cluster) << cluster.error().message();
    const DeviceSnapshot& device = cluster->nodes[0].devices[0];
    EXPECT_EQ(device.model, model) << text;
    EXPECT_NEAR(static_cast<double>(device.memory_bytes) / static_cast<double>(kGiB), gib, 0.03) << text;
  }
}
TEST(PretendTest, PeaksAreThoseOfDenseProducts) {
  EXPECT_EQ(find_known_device("h100")->bf16_tflops, 989.4) << "1,979 is with sparsity";
  EXPECT_EQ(find_known_device("L40S")->bf16_tflops, 362) << "733 is with sparsity";
  EXPECT_EQ(bf16_peak_tflops("A100"), 312) << "whatever its memory";
  EXPECT_FALSE(find_known_device("H300"));
  EXPECT_FALSE(find_known_device("A100")) << "its memory is not said";
}
TEST(PretendTest, ACapitalXCountsToo) {
  EXPECT_EQ(pretend_cluster("8XH200")->nodes[0].devices.size(), 8u);
  EXPECT_EQ(pretend_cluster("2X8xH200")->nodes.size(), 2u);
}
TEST(PretendTest, NamesAreTakenAsDriversPrintThemAndBlanksDoNotCount) {
  for (const auto& [text, model, gib] : {std::tuple{" 8xH200", "H200", 139.8},
                                         {"8 x H200 ", "H200", 139.8},
                                         {"2 x 8 x H100-80GB", "H100", 80.0},
                                         {"NVIDIA H100 80GB HBM3", "H100", 80.0},
                                         {"8xNVIDIA A100-SXM4-80GB", "A100", 80.0},
                                         {"NVIDIA GeForce RTX 4090", "RTX4090", 23.99},
                                         {"h300-96GB", "H300", 96.0}}) {
    const auto cluster = pretend_cluster(text);
    ASSERT_TRUE(cluster) << cluster.error().message();
    const DeviceSnapshot& device = cluster->nodes[0].devices[0];
    EXPECT_EQ(device.model, model) << text;
    EXPECT_NEAR(static_cast<double>(device.memory_bytes) / static_cast<double>(kGiB), gib, 0.03) << text;
  }
}
TEST(PretendTest, CoresAreNoGpuInCapitalsEither) {
  const auto cluster = pretend_cluster("CPU16-64G");
  EXPECT_EQ(cluster->nodes[0].cpus, 16);
  EXPECT_TRUE(cluster->nodes[0].devices.empty());
}
TEST(PretendTest, CountsAloneNameNoDevice) {
  for (const char* text : {"8x", "8", "x", "2x8"}) EXPECT_THAT(error(text), HasSubstr("names no device model"));
}
TEST(PretendTest, ACountOfNothingIsNamed) {
  EXPECT_EQ(
      error("0xH200"),
      "pretend cluster '0xH200': a count of 0; it must be 1 or more; wanted forms such as 8xH200, 2x8xH100-80G or "
      "cpu16-64G");
  EXPECT_THAT(error("2x0xH200"), HasSubstr("a count of 0"));
  EXPECT_THAT(error("1.5xH200"), HasSubstr("'1.5' is not a count"));
  EXPECT_THAT(error("-1xH200"), HasSubstr("'-1' is not a count"));
}
TEST(PretendTest, UnknownModelWithMemoryIsAccepted) {
  const auto cluster = pretend_cluster("h300-96g");
  EXPECT_EQ(cluster->nodes[0].devices[0].model, "H300");
  EXPECT_EQ(cluster->nodes[0].devices[0].memory_bytes, 96 * kGiB);
}
TEST(PretendTest, UnknownModelWithoutMemoryListsTheKnownOnes) {
  const std::string message = error("8xH300");
  for (const char* known : {"H100", "H200", "A100-40G", "A100-80G", "B200"}) EXPECT_THAT(message, HasSubstr(known));
  EXPECT_THAT(message, HasSubstr("Did you mean"));
}
TEST(PretendTest, A100NeedsItsMemory) {
  EXPECT_THAT(error("8xA100"), HasSubstr("It comes in several sizes: A100-40G and A100-80G."));
}
TEST(PretendTest, CpuNeedsItsMemory) { EXPECT_THAT(error("cpu16"), HasSubstr("memory")); }
TEST(PretendTest, CpuNeedsItsCores) { EXPECT_THAT(error("cpu-64G"), HasSubstr("number of cores")); }
TEST(PretendTest, MemoryNeedsItsUnit) { EXPECT_THAT(error("8xH100-80"), HasSubstr("80")); }
TEST(PretendTest, ThreeCountsAreRefused) { EXPECT_THAT(error("2x2x2xH100"), HasSubstr("3 counts")); }
TEST(PretendTest, EmptyTextIsRefused) { EXPECT_THAT(error(""), HasSubstr("no device model")); }
TEST(PretendTest, HugeCountsAreRefused) { EXPECT_THAT(error("99999xH100"), HasSubstr("above 4096")); }
TEST(PretendTest, CountsThatAreHugeTogetherAreRefused) {
  EXPECT_THAT(error("4096x4096xH200"), HasSubstr("16777216 devices"));
  EXPECT_TRUE(pretend_cluster("4096x16xH200"));
}
TEST(PretendTest, ALongTextIsRefused) {
  EXPECT_THAT(error("8x" + std::string(300, 'H') + "-80G"), HasSubstr("306 bytes"));
}

}  // namespace
}  // namespace troupe::placement

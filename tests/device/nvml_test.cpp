#include "device/nvml.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "device/visible_devices.h"

namespace troupe::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// With the stand-in for the driver's library, and without what the machine says of devices.
class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "TROUPE_STANDIN_DEVICES", "TROUPE_STANDIN_NVML_FAILS"})
      set(name, nullptr);
    set("TROUPE_NVML", NVML_STANDIN);
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  void set(const char* name, const char* value) {
    const char* before = std::getenv(name);
    before_.try_emplace(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  NvmlFacts read(const char* devices) {
    set("TROUPE_STANDIN_DEVICES", devices);
    auto facts = read_nvml();
    EXPECT_TRUE(facts) << facts.error().message();
    return facts ? *std::move(facts) : NvmlFacts{};
  }
  std::vector<std::string> models(const char* devices) {
    std::vector<std::string> names;
    for (const NvmlDevice& device : read(devices).devices) names.push_back(device.model);
    return names;
  }
  std::map<std::pair<std::size_t, std::size_t>, int> links(const char* devices) {
    std::map<std::pair<std::size_t, std::size_t>, int> found;
    for (const NvLinkPair& pair : read(devices).nvlinks) found[{pair.first, pair.second}] = pair.links;
    return found;
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(NvmlTest, WithoutTheLibraryThereIsNoDeviceAndNoError) {
  set("TROUPE_NVML", nullptr);
  set("TROUPE_STANDIN_DEVICES", "H200");
  const auto facts = read_nvml();
  if (std::system("ldconfig -p 2>/dev/null | grep -q libnvidia-ml.so.1") == 0) {
    // NVIDIA's own library answers, of a driver that works or does not
    EXPECT_TRUE(!facts || !facts->driver.empty());
    return;
  }
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_THAT(facts->driver, IsEmpty());
  EXPECT_THAT(facts->devices, IsEmpty());
}

TEST_F(NvmlTest, ADriverWithoutDevicesIsADriver) {
  const NvmlFacts facts = read("");
  EXPECT_EQ(facts.driver, "580.65.06");
  EXPECT_EQ(facts.cuda, "13.0");
  EXPECT_THAT(facts.devices, IsEmpty());
}

TEST_F(NvmlTest, ADeviceHasTheMemoryThatCudaGivesOut) {
  const NvmlFacts facts = read("H200,A6000:48");
  ASSERT_EQ(facts.devices.size(), 2U);
  EXPECT_EQ(facts.devices[0].memory_bytes, 143'155LL << 20);
  EXPECT_EQ(facts.devices[0].major, 9);
  EXPECT_EQ(facts.devices[0].minor, 0);
  EXPECT_EQ(facts.devices[1].memory_bytes, 48LL << 30);
  EXPECT_EQ(facts.devices[1].major, 8);
  EXPECT_EQ(facts.devices[1].minor, 6);
}

TEST_F(NvmlTest, DevicesAreInTheOrderOfTheirBusIdsWhateverTheDriverCounts) {
  EXPECT_THAT(models("A100,H100,L40S"), ElementsAre("A100", "H100", "L40S"));
}

TEST_F(NvmlTest, NamesKeepWhatTellsModelsApart) {
  EXPECT_THAT(models("H200,H100,A100,A6000,RTX4090,RTX6000Ada,V100"),
              ElementsAre("H200", "H100", "A100", "RTX A6000", "RTX 4090", "RTX 6000 Ada", "V100"));
  EXPECT_THAT(models("H100 NVL,RTX 5000 Max-Q,H100 PCIe,GH200 144G HBM3e,A100 80GB PCIe,"),
              ElementsAre("H100 NVL", "RTX 5000 Max-Q", "H100", "GH200", "A100"));
}

TEST_F(NvmlTest, LinksAreCountedThroughSwitchesAndDirectly) {
  EXPECT_EQ(links("H200,H200,H200"), (decltype(links("")){{{0, 1}, 18}, {{0, 2}, 18}, {{1, 2}, 18}}));
  EXPECT_EQ(links("A6000,A6000,A6000,A6000"), (decltype(links("")){{{0, 1}, 4}, {{2, 3}, 4}}));
  EXPECT_THAT(links("RTX4090,RTX4090"), IsEmpty());
  set("CUDA_VISIBLE_DEVICES", "3,2,1");
  EXPECT_EQ(links("A6000,A6000,A6000,A6000"), (decltype(links("")){{{0, 1}, 4}}));
}

TEST_F(NvmlTest, OnlyDevicesThatCudaShowsAreThereAsItNumbersThem) {
  set("CUDA_VISIBLE_DEVICES", "2,0");
  EXPECT_THAT(models("A100,H100,L40S"), ElementsAre("L40S", "A100"));
  set("CUDA_VISIBLE_DEVICES", "");
  EXPECT_THAT(models("A100,H100,L40S"), IsEmpty());
  set("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-00000000-0000");
  EXPECT_THAT(models("A100,H100,L40S"), ElementsAre("H100", "A100"));
}

TEST_F(NvmlTest, AFailureNamesTheEntryAndSaysWhatToDo) {
  set("TROUPE_STANDIN_NVML_FAILS", "1");
  const auto facts = read_nvml();
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code(), Errc::failed_precondition);
  EXPECT_THAT(facts.error().message(), HasSubstr("nvmlInit_v2: Driver Not Loaded; NVIDIA's library is here, but"));
}

TEST_F(NvmlTest, ADividedDeviceIsRefusedWhereItIsVisible) {
  set("TROUPE_STANDIN_DEVICES", "H200,MIG");
  const auto facts = read_nvml();
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().message(), HasSubstr("GPU-10000000-0000-0000-0000-000000000000 is divided"));
  set("CUDA_VISIBLE_DEVICES", "0");
  EXPECT_THAT(models("H200,MIG"), ElementsAre("H200"));
}

TEST_F(NvmlTest, ANamedLibraryMustBeOne) {
  set("TROUPE_NVML", "/proc/none.so");
  const auto facts = read_nvml();
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().message(), HasSubstr("TROUPE_NVML=/proc/none.so: "));
  set("TROUPE_NVML", "libc.so.6");
  EXPECT_THAT(read_nvml().error().message(), HasSubstr("has no nvmlInit_v2; update the NVIDIA driver"));
}

class VisibleDevicesTest : public ::testing::Test {
 protected:
  std::vector<std::size_t> visible(std::string_view list) const { return visible_devices(list, uuids_).value(); }
  const std::vector<std::string> uuids_ = {"GPU-aa00", "GPU-aa11", "GPU-bb00"};
};

TEST_F(VisibleDevicesTest, TheFirstEntryThatNamesNoneEndsTheList) {
  EXPECT_THAT(visible("0,2,-1,1"), ElementsAre(0, 2));
  EXPECT_THAT(visible("1,3,0"), ElementsAre(1));
  EXPECT_THAT(visible("x,0"), IsEmpty());
  EXPECT_THAT(visible("0,,1"), ElementsAre(0));
  EXPECT_THAT(visible("99999999999999999999999"), IsEmpty());
}

TEST_F(VisibleDevicesTest, BlanksDoNotCount) { EXPECT_THAT(visible(" 2 , 1"), ElementsAre(2, 1)); }

TEST_F(VisibleDevicesTest, ADeviceNamedTwiceLeavesNone) {
  EXPECT_THAT(visible("1,1"), IsEmpty());
  EXPECT_THAT(visible("GPU-bb,GPU-bb00"), IsEmpty());
}

TEST_F(VisibleDevicesTest, UuidsMayBeCutWhereTheyStayUnique) {
  EXPECT_THAT(visible("GPU-b,GPU-aa1"), ElementsAre(2, 1));
  EXPECT_THAT(visible("GPU-aa"), IsEmpty());
  EXPECT_THAT(visible("GPU-bb00,0"), ElementsAre(2));
  EXPECT_THAT(visible("0,GPU-bb00"), ElementsAre(0));
}

TEST_F(VisibleDevicesTest, PartsOfDevicesAreRefused) {
  EXPECT_EQ(visible_devices("MIG-8932f937", uuids_).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::device

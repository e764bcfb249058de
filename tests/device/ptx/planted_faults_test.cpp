// kernels/planted.cu: each fault is found, at its line.
#include <fstream>
#include <map>

#include "tests/device/ptx/session.h"

namespace troupe::device::ptx {
namespace {

/// The lines of kernels/planted.cu that have the comment "// NAME: KIND or KIND", and the kinds. Two lines: which one
/// comes second and is the fault depends on the order.
std::map<std::uint32_t, std::string> planted(const std::string& name, const std::string& file = "planted.cu") {
  std::ifstream source(std::string(TROUPE_SOURCE_DIR) + "/tests/device/ptx/kernels/" + file);
  std::map<std::uint32_t, std::string> lines;
  std::string text;
  for (std::uint32_t line = 1; std::getline(source, text); ++line) {
    const std::size_t at = text.find("// " + name + ": ");
    if (at != std::string::npos) lines[line] = text.substr(at + name.size() + 5);
  }
  EXPECT_FALSE(lines.empty()) << "no line has " << name;
  return lines;
}

class PlantedFaultsTest : public ::testing::Test {
 protected:
  PlantedFaultsTest() : session(Session::read(std::string(TROUPE_PTX_FOLDER) + "/planted.sm_80.ptx")) {}

  /// Runs the kernel with several seeds: each finds a planted fault where it is, and none elsewhere.
  template <class... Arguments>
  void expect_found(const std::string& name, const LaunchShape& shape, const Arguments&... arguments) {
    const auto lines = planted(name);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const LaunchResult result = session.run(name, shape, {.seed = seed, .most_steps = 20000}, arguments...);
      EXPECT_FALSE(result.findings.empty()) << name << ", seed " << seed;
      for (const Finding& finding : result.findings) {
        const auto line = lines.find(finding.line);
        EXPECT_TRUE(line != lines.end() && line->second.find(enum_name(finding.kind)) != std::string::npos &&
                    finding.file.ends_with("planted.cu") && finding.kernel == name)
            << "seed " << seed << ": " << finding.to_string();
      }
    }
  }

  float* floats(std::size_t count) { return session.upload(std::vector<float>(count, 1.5f)); }
  std::int32_t* counting(int count) {
    std::vector<std::int32_t> values;
    for (int i = 0; i < count; ++i) values.push_back(i % 8);
    return session.upload(values);
  }

  Session session;
};

TEST_F(PlantedFaultsTest, MissingBarrier) {
  expect_found("missing_barrier", {.block = {64, 1, 1}}, floats(64), floats(64));
}
TEST_F(PlantedFaultsTest, MissingSecondBarrierOfALoop) {
  expect_found("overwritten_early", {.block = {64, 1, 1}}, floats(192), floats(64));
}
TEST_F(PlantedFaultsTest, MissingSyncwarp) {
  expect_found("missing_syncwarp", {.block = {32, 1, 1}}, floats(32), floats(32));
}
TEST_F(PlantedFaultsTest, LanesWriteOnePlace) { expect_found("same_place", {.block = {32, 1, 1}}, floats(32)); }
TEST_F(PlantedFaultsTest, MissingWaitForAnAsyncCopy) {
  expect_found("missing_wait", {.block = {32, 1, 1}}, floats(128), floats(128));
}
TEST_F(PlantedFaultsTest, WaitWithoutABarrier) {
  expect_found("wait_of_another", {.block = {64, 1, 1}}, floats(256), floats(256));
}
TEST_F(PlantedFaultsTest, BoundOffByOne) {
  const int n = 100;
  expect_found("off_by_one", {.grid = {4, 1, 1}, .block = {32, 1, 1}}, floats(100), floats(100), n);
}
TEST_F(PlantedFaultsTest, WrongLeadingDimension) {
  const int columns = 32;
  expect_found("wrong_stride", {.grid = {8, 1, 1}, .block = {32, 1, 1}}, floats(256), floats(256), columns);
}
TEST_F(PlantedFaultsTest, UnwrittenSharedMemory) {
  expect_found("unwritten_shared", {.block = {64, 1, 1}}, floats(64));
}
TEST_F(PlantedFaultsTest, UnwrittenGlobalMemory) {
  expect_found("unwritten_global", {.block = {64, 1, 1}}, session.allocate<float>(64), floats(64));
}
TEST_F(PlantedFaultsTest, MisalignedVector) {
  expect_found("misaligned_vector", {.block = {32, 1, 1}}, floats(256), floats(128));
}
TEST_F(PlantedFaultsTest, SharedMemoryOverrun) {
  expect_found("shared_overrun", {.block = {32, 1, 1}}, floats(32), floats(32));
}
TEST_F(PlantedFaultsTest, LaneMissingInAMask) {
  expect_found("missing_lane", {.block = {32, 1, 1}}, counting(32), counting(32));
}
TEST_F(PlantedFaultsTest, ValueOfALaneThatDoesNotTakePart) {
  expect_found("wrong_mask", {.block = {32, 1, 1}}, counting(32), counting(32));
}
TEST_F(PlantedFaultsTest, BarrierInPartedCode) {
  expect_found("parted_barrier", {.block = {64, 1, 1}}, counting(64), counting(64));
}
TEST_F(PlantedFaultsTest, BarrierThatOneWarpReaches) {
  expect_found("barrier_of_one_warp", {.block = {64, 1, 1}}, counting(64), counting(64));
}
TEST_F(PlantedFaultsTest, EndlessLoop) {
  expect_found("endless", {.block = {64, 1, 1}}, session.upload(std::vector<std::int32_t>{0}), counting(64));
}
TEST_F(PlantedFaultsTest, ReadOnlyMemoryIsWritten) {
  std::int32_t* both = counting(32);
  expect_found("read_only_written", {.block = {32, 1, 1}}, both, both);
}
TEST_F(PlantedFaultsTest, Trap) { expect_found("stops", {.block = {32, 1, 1}}, counting(32), counting(32)); }
TEST_F(PlantedFaultsTest, UseAfterFree) {
  std::int32_t* x = counting(32);
  ASSERT_TRUE(session.memory().free(reinterpret_cast<std::uint64_t>(x)));
  expect_found("sound_copy", {.block = {32, 1, 1}}, x, counting(32));
}

TEST(RefusedTest, AFloatAtomicIsNamedWithItsLine) {
  auto module = Module::parse(Session::read(std::string(TROUPE_PTX_FOLDER) + "/refused.sm_80.ptx"));
  ASSERT_TRUE(module);
  DeviceMemory memory;
  const auto program = Program::load(std::move(*module), memory);
  ASSERT_FALSE(program);
  const std::string text = program.error().message();
  EXPECT_NE(text.find("atomics on floats"), std::string::npos) << text;
  EXPECT_NE(text.find("add.f32"), std::string::npos) << text;
  const std::uint32_t line = planted("refused", "refused.cu").begin()->first;
  EXPECT_NE(text.find("refused.cu:" + std::to_string(line) + ":"), std::string::npos) << text;
}

}  // namespace
}  // namespace troupe::device::ptx

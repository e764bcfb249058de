#include "base/metric_sinks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(MetricSinksTest, JsonLinesHaveStepWallSamplesAndMetrics) {
  const ScratchFolder dir;
  auto sink = make_jsonl_sink(dir / "sub/metrics.jsonl");
  ASSERT_TRUE((*sink)->write(1, 1795260840.25, 8, {{"train/loss", 0.5}, {"time/step_s", 0.1}}));
  ASSERT_TRUE((*sink)->write(2, 1795260841, 16, {{"a\"b\\\n", kNan}, {"hi", kInf}, {"lo", -kInf}}));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_EQ(text_of(dir / "sub/metrics.jsonl"),
            "{\"step\":1,\"wall\":1795260840.25,\"samples\":8,\"m\":{\"time/step_s\":0.1,\"train/loss\":0.5}}\n"
            "{\"step\":2,\"wall\":1795260841,\"samples\":16,\"m\":{\"a\\\"b\\\\\\u000a\":\"NaN\",\"hi\":\"Infinity\","
            "\"lo\":\"-Infinity\"}}\n");
}

TEST(MetricSinksTest, NumbersReadBackToTheSameBits) {
  const ScratchFolder dir;
  const double value = 0.1 + 0.2;
  auto sink = make_jsonl_sink(dir / "m.jsonl");
  ASSERT_TRUE((*sink)->write(1, 1, 1, {{"x", value}}));
  ASSERT_TRUE((*sink)->flush());
  const std::string text = text_of(dir / "m.jsonl");
  EXPECT_EQ(std::strtod(text.c_str() + text.find("\"x\":") + 4, nullptr), value);
}

TEST(MetricSinksTest, CsvIsLongSoThatMetricsMayAppearLater) {
  const ScratchFolder dir;
  auto sink = make_csv_sink(dir / "m.csv");
  ASSERT_TRUE((*sink)->write(1, 10.5, 8, {{"a", 1}}));
  ASSERT_TRUE((*sink)->write(2, 11.5, 16, {{"a", kNan}, {"b,\"c\"", -2.5}}));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_EQ(text_of(dir / "m.csv"),
            "step,wall,samples,name,value\n1,10.5,8,a,1\n2,11.5,16,a,NaN\n2,11.5,16,\"b,\"\"c\"\"\",-2.5\n");
}

TEST(MetricSinksTest, AResumedRunContinuesItsFilesWithoutTheTornLine) {
  const ScratchFolder dir;
  const std::string jsonl = dir / "m.jsonl", csv = dir / "m.csv";
  std::ofstream(jsonl) << "{\"step\":1}\n{\"step\":2,\"wa";
  std::ofstream(csv) << "step,wall,samples,name,value\n1,2,3,a,4\n2,2";
  ASSERT_TRUE((*make_jsonl_sink(jsonl))->write(2, 5, 6, {}));  // destroyed here, which writes
  ASSERT_TRUE((*make_csv_sink(csv))->write(2, 5, 6, {{"a", 7}}));
  EXPECT_EQ(text_of(jsonl), "{\"step\":1}\n{\"step\":2,\"wall\":5,\"samples\":6,\"m\":{}}\n");
  EXPECT_EQ(text_of(csv), "step,wall,samples,name,value\n1,2,3,a,4\n2,5,6,a,7\n");
}

TEST(MetricSinksTest, AFileThatIsOneTornLineStartsAnew) {
  const ScratchFolder dir;
  std::ofstream(dir / "m.csv") << std::string(10000, 'x');
  ASSERT_TRUE((*make_csv_sink(dir / "m.csv"))->write(1, 2, 3, {{"a", 4}}));
  EXPECT_EQ(text_of(dir / "m.csv"), "step,wall,samples,name,value\n1,2,3,a,4\n");
}

TEST(MetricSinksTest, AFolderInTheWayIsAnErrorWithThePath) {
  const ScratchFolder dir;
  EXPECT_NE(make_jsonl_sink(dir / "").error().message().find(dir / ""), std::string::npos);
}

TEST(MetricSinksTest, AFullDiskIsReportedAsSuch) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto sink = make_jsonl_sink("/dev/full");
  ASSERT_TRUE((*sink)->write(1, 2, 3, {}));
  EXPECT_EQ((*sink)->flush().error().code(), Errc::resource_exhausted);
}

}  // namespace
}  // namespace troupe::base

// Names, shapes, counts and initial values of the DiT's parameters.
#include "model/wan/dit_units.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/wan/frozen_params.h"
#include "tests/model/wan/golden_constructor.h"
#include "tests/support/golden_folder.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

std::int64_t count(const std::vector<UnitSpec>& units, const std::string& prefix) {
  std::int64_t total = 0;
  for (const auto& unit : units) {
    for (const auto& spec : unit.params) {
      if (spec.name.rfind(prefix, 0) == 0) total += count_parameters({"", "", {spec}});
    }
  }
  return total;
}

TEST(DitUnitsTest, Wan5bHasThePublishedParameterCounts) {
  const auto units = dit_units(ModelConfig{});
  EXPECT_EQ(count(units, ""), 5'606'692'832);
  EXPECT_EQ(count(units, "patch_embedding"), 592'896);
  EXPECT_EQ(count(units, "text_embedding"), 22'026'240);
  EXPECT_EQ(count(units, "time_embedding"), 10'229'760);
  EXPECT_EQ(count(units, "time_projection"), 56'641'536);
  EXPECT_EQ(count(units, "img_emb"), 5'583'616);
  EXPECT_EQ(count(units, "blocks.7."), 182'540'288);
  EXPECT_EQ(count(units, "head"), 596'160);
  EXPECT_EQ(count(units, "state_encoder"), 3'215'360);
  EXPECT_EQ(count(units, "action_encoder"), 28'419'072);
  EXPECT_EQ(count(units, "action_decoder"), 3'179'552);
}

TEST(DitUnitsTest, Wan14bHasThePublishedParameterCounts) {
  const auto units = dit_units(wan_14b());
  EXPECT_EQ(count(units, ""), 16'484'292'448);
  EXPECT_EQ(count(units, "blocks.39."), 403'838'464);
  EXPECT_EQ(count(units, "time_projection"), 157'317'120);
  EXPECT_EQ(count(units, "img_emb"), 8'211'200);
  EXPECT_EQ(count(units, "head"), 337'984);
}

TEST(DitUnitsTest, UnitsRunFromEmbedOverBlocksToHead) {
  const auto units = dit_units(ModelConfig{});
  ASSERT_EQ(units.size(), 32U);
  EXPECT_EQ(units.front().name, "embed");
  EXPECT_EQ(units[1].name, "blocks.0");
  EXPECT_EQ(units[30].name, "blocks.29");
  EXPECT_EQ(units.back().name, "head");
  EXPECT_EQ(units[1].layout_class, units[30].layout_class);
}

class GoldenInitTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenInitTest, EveryRecordedTensorHasTheReferencesMoments) {
  ASSERT_TRUE(GetParam().json.contains("config")) << "without sizes nothing can be compared";
  const auto config = testing::config_of_constructor(GetParam().json["config"]);
  const auto tensors = GetParam().json.value("parameters", nlohmann::json::object());
  std::size_t compared = 0;
  for (const auto& unit : dit_units(config)) {
    for (const auto& spec : unit.params) {
      if (!tensors.contains(spec.name)) continue;
      const auto& want = tensors.at(spec.name);
      ++compared;
      const auto values = initial_tensor(spec, 11).to(at::kDouble);
      EXPECT_EQ(spec.shape, want.at("shape").get<std::vector<std::int64_t>>()) << spec.name;
      const double expected = want.at("expected_std").get<double>(), n = static_cast<double>(values.numel());
      if (expected == 0) {
        EXPECT_TRUE(values.eq(want.at("mean").get<double>()).all().item<bool>()) << spec.name;
        continue;
      }
      EXPECT_LE(std::abs(values.mean().item<double>()), 5 * expected / std::sqrt(n)) << spec.name;
      const double std = values.std(/*unbiased=*/false).item<double>();
      EXPECT_LE(std::abs(std / expected - 1), 5 / std::sqrt(2 * n)) << spec.name;
    }
  }
  EXPECT_GT(compared, 0U);
  EXPECT_EQ(compared, tensors.size()) << "the case has parameters that the model lacks";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenInitTest, ::testing::ValuesIn(golden_cases("dit", "init_stats")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenInitTest);

}  // namespace
}  // namespace troupe::model

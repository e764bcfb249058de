// Names, shapes, counts and initial values of the DiT's parameters.
#include "model/wan/dit_units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/wan/frozen_params.h"
#include "tests/support/golden_folder.h"
#include "tests/support/tensor_checks.h"

namespace troupe {
namespace {

using testing::golden_cases;
using testing::GoldenCase;

ModelConfig config_5b() { return {}; }  // the defaults of ModelConfig are the 5B's sizes

ModelConfig config_14b() {
  ModelConfig config;
  config.dit.type = "i2v";
  config.dit.dim = 5120;
  config.dit.num_heads = 40;
  config.dit.num_layers = 40;
  config.dit.ffn_dim = 13824;
  config.dit.in_dim = 36;
  config.dit.out_dim = 16;
  config.dit.concat_first_frame_latent = true;
  return config;
}

std::map<std::string, std::vector<std::int64_t>> shapes_of(const std::vector<UnitSpec>& units) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const auto& unit : units) {
    for (const auto& spec : unit.params) out[spec.name] = spec.shape;
  }
  return out;
}

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
  const auto units = dit_units(config_5b());
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
  const auto units = dit_units(config_14b());
  EXPECT_EQ(count(units, ""), 16'484'292'448);
  EXPECT_EQ(count(units, "blocks.39."), 403'838'464);
  EXPECT_EQ(count(units, "time_projection"), 157'317'120);
  EXPECT_EQ(count(units, "img_emb"), 8'211'200);
  EXPECT_EQ(count(units, "head"), 337'984);
}

TEST(DitUnitsTest, UnitsRunFromEmbedOverBlocksToHead) {
  const auto units = dit_units(config_5b());
  ASSERT_EQ(units.size(), 32U);
  EXPECT_EQ(units.front().name, "embed");
  EXPECT_EQ(units[1].name, "blocks.0");
  EXPECT_EQ(units[30].name, "blocks.29");
  EXPECT_EQ(units.back().name, "head");
  EXPECT_EQ(units[1].layout_class, units[30].layout_class);
}

class GoldenDitKeysTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenDitKeysTest, NamesAndShapesEqualTheReferences) {
  const auto& c = GetParam().json.at("constructor");
  ModelConfig config;
  config.dit.dim = c.at("dim").get<std::int64_t>();
  config.dit.num_heads = c.at("num_heads").get<std::int64_t>();
  config.dit.num_layers = c.at("num_layers").get<std::int64_t>();
  config.dit.ffn_dim = c.at("ffn_dim").get<std::int64_t>();
  config.dit.in_dim = c.at("in_dim").get<std::int64_t>();
  config.dit.out_dim = c.at("out_dim").get<std::int64_t>();
  config.dit.freq_dim = c.at("freq_dim").get<std::int64_t>();
  const auto want = GetParam().json.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
  const auto units = dit_units(config);
  EXPECT_EQ(shapes_of(units), want);
  EXPECT_EQ(count(units, ""), GetParam().json.at("parameter_count").get<std::int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenDitKeysTest, ::testing::ValuesIn(golden_cases("dit", "keys")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenDitKeysTest);

class GoldenInitTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenInitTest, EveryTensorHasTheReferencesMoments) {
  const auto& c = GetParam().json.at("config");
  const auto& tensors = GetParam().json.at("parameters");
  ModelConfig config;
  config.dit.dim = c.at("dim").get<std::int64_t>();
  config.dit.num_layers = c.at("num_layers").get<std::int64_t>();
  config.dit.ffn_dim = c.at("ffn_dim").get<std::int64_t>();
  config.dit.in_dim = c.at("in_dim").get<std::int64_t>();
  config.dit.out_dim = c.at("out_dim").get<std::int64_t>();
  config.dit.freq_dim = c.at("freq_dim").get<std::int64_t>();
  config.dit.encoder_hidden = c.at("hidden_size").get<std::int64_t>();
  config.text_encoder.dim = c.at("text_dim").get<std::int64_t>();
  std::size_t found = 0;
  for (const auto& unit : dit_units(config)) {
    for (const auto& spec : unit.params) {
      ASSERT_TRUE(tensors.contains(spec.name)) << spec.name;
      const auto& want = tensors.at(spec.name);
      ++found;
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
  EXPECT_EQ(found, tensors.size());
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenInitTest, ::testing::ValuesIn(golden_cases("dit", "init_stats")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenInitTest);

}  // namespace
}  // namespace troupe

// The precision profile of training (docs/precision.md): dtypes along the network, and rounded timesteps.
#include <gtest/gtest.h>

#include "tests/model/wan/golden_dit_case.h"
#include "tests/model/wan/network_run.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

class GoldenPrecisionTest : public ::testing::TestWithParam<GoldenCase> {};

DitNetwork network_of(const GoldenDitCase& golden, bool round_timesteps) {
  return {golden.config(),
          golden.json.at("config").at("max_chunk_size").get<std::int64_t>(),
          {.decoupled_action_timesteps = golden.decoupled(), .round_timesteps = round_timesteps}};
}

template <class Map>
Map to_float(Map tensors) {
  for (auto& [name, tensor] : tensors) {
    if (tensor.is_floating_point()) tensor = tensor.to(at::kFloat);
  }
  return tensors;
}

TEST_P(GoldenPrecisionTest, RoundedTimestepsGiveWhatFsdp2WithCastInputsGives) {
  const GoldenDitCase golden(GetParam());
  const auto want = golden.out.find("fp32_timesteps_rounded.v_video");
  if (want == golden.out.end()) GTEST_SKIP() << GetParam().name << " records no rounded timesteps";
  const auto rounded = network_of(golden, true);
  const auto batch = golden.batch();
  const auto exact = testing::run_network(rounded, to_float(golden.weights), to_float(batch));
  EXPECT_LE(testing::relative_l2(exact.predictions.at(batch_keys::kVideoVelocity), want->second), 1e-5);
  const auto bf16 = testing::run_network(rounded, golden.weights, batch);
  const double limit = golden.bf16_limit("v_video");
  EXPECT_LE(testing::relative_l2(bf16.predictions.at(batch_keys::kVideoVelocity), want->second), limit);
  // the loss weights stay those of the unrounded ids, so the loss is the recorded one
  const auto loss = golden.out.find("bf16_timesteps_rounded.loss");
  if (loss != golden.out.end() && bf16.loss.defined()) {
    EXPECT_NEAR(bf16.loss.item<double>() / loss->second.item<double>(), 1.0, limit);
  }
  const auto unrounded = testing::run_network(network_of(golden, false), to_float(golden.weights), to_float(batch));
  EXPECT_GT(testing::relative_l2(unrounded.predictions.at(batch_keys::kVideoVelocity), want->second), limit);
}

TEST_P(GoldenPrecisionTest, DtypesAlongTheNetworkAreTheProfiles) {
  const GoldenDitCase golden(GetParam());
  const auto network = network_of(golden, false);
  const auto batch = golden.batch();
  const auto carry = network.prologue(testing::view_of(network.units().front(), golden.weights), batch);
  std::vector<at::Tensor> blocks;
  const auto outputs = testing::run_network(network, golden.weights, batch, &blocks);
  auto got = testing::outputs_by_name(outputs);
  for (const char* name : {"patch_noisy", "patch_clean", "action_features", "state_features"}) got[name] = carry.x;
  got["e_noisy"] = carry.conditioning[dit_conditioning::kTimeRows];
  got["e0_noisy"] = carry.conditioning[dit_conditioning::kModulationRows];
  got["ctx_text"] = carry.conditioning[dit_conditioning::kText];
  for (std::size_t i = 0; i < blocks.size(); ++i) got["block" + std::to_string(i) + ".out"] = blocks[i];
  const std::map<std::string, at::ScalarType> names = {{"bfloat16", at::kBFloat16}, {"float32", at::kFloat}};
  const auto observed = golden.json.value("observed_dtypes", nlohmann::json::object());
  int compared = 0;
  for (const auto& [name, tensor] : got) {
    const auto dtype = observed.find(name);
    if (dtype == observed.end()) continue;
    EXPECT_EQ(tensor.scalar_type(), names.at(dtype->get<std::string>())) << name;
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " lists no dtypes";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenPrecisionTest, ::testing::ValuesIn(golden_cases("dit", "bf16")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenPrecisionTest);

}  // namespace
}  // namespace troupe::model

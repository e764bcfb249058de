#include "workers/inference/policy/action_decoder.h"

#include <gmock/gmock.h>

#include "tests/workers/inference/policy/tiny_policy.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

ActionDecoder decoder(const PolicySpec& spec, bool sign = false) {
  auto made = ActionDecoder::make(spec, sign);
  return std::move(*made);
}

/// Rows of four values, as the network pads them: (r + d) / 10 - 0.5.
std::vector<float> network_rows(std::int64_t horizon) {
  std::vector<float> rows;
  for (std::int64_t r = 0; r < horizon; ++r) {
    for (std::int64_t d = 0; d < 4; ++d) rows.push_back(static_cast<float>(r + d) / 10.0F - 0.5F);
  }
  return rows;
}

TEST(ActionDecoderTest, NormalisationIsUndoneAndTheNewestStateAdded) {
  const ActionChunk chunk =
      decoder(tiny_spec()).decode(network_rows(8), {{"joints", {2.0F, 3.0F}}, {"gripper", {9.0F}}});
  EXPECT_EQ(chunk.rows, 8);
  EXPECT_EQ(chunk.width, 3);
  ASSERT_EQ(chunk.values.size(), 24U);
  for (std::size_t r = 0; r < 8; ++r) {
    const auto y = [&](std::size_t d) { return static_cast<float>(r + d) / 10.0F - 0.5F; };
    EXPECT_FLOAT_EQ(chunk.values[r * 3], (y(0) + 1) / 2 * 1.0F - 0.5F + 2.0F);
    EXPECT_FLOAT_EQ(chunk.values[r * 3 + 1], (y(1) + 1) / 2 * 0.5F - 0.25F + 3.0F);
    EXPECT_FLOAT_EQ(chunk.values[r * 3 + 2], (y(2) + 1) / 2 * 1.0F) << "the gripper is absolute";
  }
}

TEST(ActionDecoderTest, ItUndoesWhatTrainingDoes) {
  PolicySpec spec = tiny_spec();
  spec.action[0].relative = false;
  const std::vector<float> actions = {0.2F, -0.1F, 0.9F};
  std::vector<float> joints = {actions[0], actions[1]}, gripper = {actions[2]};
  (void)Normalizer<float>(NormalizationMode::q99, spec.action[0].statistics[0]).forward(joints);
  (void)Normalizer<float>(NormalizationMode::q99, spec.action[1].statistics[0]).forward(gripper);
  std::vector<float> rows;
  for (int r = 0; r < 8; ++r) rows.insert(rows.end(), {joints[0], joints[1], gripper[0], 77.0F});
  const ActionChunk chunk = decoder(spec).decode(rows, {});
  for (std::size_t i = 0; i < chunk.values.size(); ++i) EXPECT_NEAR(chunk.values[i], actions[i % 3], 1e-6);
}

TEST(ActionDecoderTest, StatisticsOfAHorizonBelongToTheirSteps) {
  PolicySpec spec = tiny_spec();
  FeatureStatistics step = spec.action[1].statistics[0];
  spec.action[1].statistics.clear();
  for (int r = 0; r < 8; ++r) {
    step.q01 = {static_cast<double>(r)};
    step.q99 = {static_cast<double>(r) + 2};
    spec.action[1].statistics.push_back(step);
  }
  const ActionChunk chunk = decoder(spec).decode(std::vector<float>(32, 0.0F), {{"joints", {0, 0}}});
  for (std::size_t r = 0; r < 8; ++r) EXPECT_FLOAT_EQ(chunk.values[r * 3 + 2], static_cast<float>(r) + 1);
}

TEST(ActionDecoderTest, TheGrippersSignIsSentOnlyWhereTheReferenceDoes) {
  PolicySpec spec = tiny_spec();
  EXPECT_THAT(ActionDecoder::make(spec, true).error().message(), HasSubstr("this is 'tiny'"));
  spec.embodiment.tag = "libero_sim";
  spec.action[1].statistics[0].q01 = {-1};
  const ActionChunk chunk = decoder(spec, true).decode(network_rows(8), {{"joints", {0, 0}}});
  // The third value of row r is (r + 2) / 10 - 0.5: not above zero up to row 3.
  for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(chunk.values[r * 3 + 2], r > 3 ? 1.0F : -1.0F);
  EXPECT_NE(std::abs(chunk.values[0]), 1.0F);
}

TEST(ActionDecoderTest, ANormalisationWithoutInverseIsRefused) {
  PolicySpec spec = tiny_spec();
  spec.action[1].mode = NormalizationMode::scale;
  EXPECT_THAT(ActionDecoder::make(spec, false).error().message(), HasSubstr("action.gripper is normalised by 'scale'"));
}

}  // namespace
}  // namespace troupe::workers

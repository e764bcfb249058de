// The schedule table, keyed draws, mixing and the weighted losses.
#include "model/loss/flow_matching.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

TEST(FlowCoefficientsTest, TheyAreWhatTheLossesMultiplySquaredErrorsBy) {
  at::manual_seed(8);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto v = at::randn({2, 3, 4, 2, 6}, options), v_target = at::randn({2, 3, 4, 2, 6}, options);
  const auto v_weights = at::rand({2, 4}, options);
  EXPECT_NEAR(((v - v_target).square() * video_flow_coefficients(v, v_weights)).sum().item<double>(),
              video_flow_loss(v, v_target, v_weights).item<double>(), 1e-12);
  const auto a = at::randn({2, 5, 7}, options), a_target = at::randn({2, 5, 7}, options);
  const auto mask = at::rand({2, 5, 7}, options) > 0.3, real = at::tensor({1, 0}).to(at::kBool);
  const auto a_weights = at::rand({2, 5}, options);
  EXPECT_NEAR(((a - a_target).square() * action_flow_coefficients(a, mask, real, a_weights)).sum().item<double>(),
              action_flow_loss(a, a_target, mask, real, a_weights).item<double>(), 1e-12);
}

TEST(FlowScheduleTest, TableHasThePublishedRows) {
  const auto schedule = make_flow_schedule();
  struct Row {
    int id;
    double sigma, t, weight;
  };
  for (const auto& row :
       {Row{0, 1.0, 1000.0, 0.0}, Row{1, 0.9998, 999.7998, 0.001281}, Row{100, 0.978261, 978.2609, 0.139075},
        Row{500, 0.833333, 833.3333, 1.024862}, Row{833, 0.5006, 500.5995, 2.0764},
        Row{990, 0.048077, 48.0769, 0.306796}, Row{999, 0.00498, 4.9801, 0.031879}}) {
    EXPECT_NEAR(schedule.sigmas[row.id].item<double>(), row.sigma, 1e-6) << row.id;
    EXPECT_NEAR(schedule.timesteps[row.id].item<double>(), row.t, 2e-4) << row.id;
    EXPECT_NEAR(schedule.weights[row.id].item<double>(), row.weight, 2e-6) << row.id;
  }
  EXPECT_EQ(schedule.weights[0].item<double>(), 0.0);
  EXPECT_NEAR(schedule.weights.to(at::kDouble).mean().item<double>(), 1.0, 1e-6);
  EXPECT_NEAR(schedule.sigmas.to(at::kDouble).mean().item<double>(), 0.747550, 1e-6);
}

/// A case's tensors and tolerances, either of which may lack entries, and how many results were compared with them.
class ScheduleCase {
 public:
  explicit ScheduleCase(const GoldenCase& source)
      : tensors_(testing::load_safetensors(source.tensors())),
        stated_(source.json.value("recommended_abs_tolerance", nlohmann::json())) {}

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const at::Tensor& input(const std::string& name) const { return tensors_.at(name); }
  int compared() const { return compared_; }

  /// Compares `got` with the case's tensor `name`, if it has one, to the tolerance of that quantity.
  void expect(const std::string& name, const at::Tensor& got, const std::string& quantity) {
    if (!has(name)) return;
    expect_near(got, tensors_.at(name), tolerance(quantity), name);
    ++compared_;
  }

 private:
  double tolerance(const std::string& quantity) const {
    static const std::map<std::string, double> kUnstated = {{"sigmas", 1e-6},   {"timesteps", 2e-4}, {"weights", 2e-6},
                                                            {"mix_fp32", 1e-6}, {"mix_bf16", 0},     {"ids", 0}};
    return stated_.is_object() ? stated_.value(quantity, kUnstated.at(quantity)) : kUnstated.at(quantity);
  }

  testing::TensorMap tensors_;
  nlohmann::json stated_;
  int compared_ = 0;
};

class GoldenScheduleTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenScheduleTest, TableIdsAndMixingMatchTheReference) {
  ScheduleCase c(GetParam());
  const auto schedule = make_flow_schedule();
  c.expect("out.sigmas", schedule.sigmas, "sigmas");
  c.expect("out.timesteps", schedule.timesteps, "timesteps");
  c.expect("out.weights", schedule.weights, "weights");
  if (c.has("in.beta_draw")) c.expect("out.beta_ids", ids_from_beta_draws(c.input("in.beta_draw")), "ids");
  if (c.has("in.mix.ids")) {
    const auto& ids = c.input("in.mix.ids");
    c.expect("out.mix.weights", schedule.weights.index({ids}), "weights");
    if (c.has("in.mix.x0") && c.has("in.mix.eps")) {
      for (const auto& [suffix, dtype] :
           {std::pair{std::string("fp32"), at::kFloat}, std::pair{std::string("bf16"), at::kBFloat16}}) {
        const auto mix =
            mix_noise(c.input("in.mix.x0").to(dtype), c.input("in.mix.eps"), schedule.sigmas.index({ids}).unsqueeze(1));
        c.expect("out.mix.x_t_" + suffix, mix.noisy, "mix_" + suffix);
        c.expect("out.mix.target_" + suffix, mix.target, "mix_" + suffix);
      }
    }
  }
  EXPECT_GT(c.compared(), 0) << "the case has no tensor that can be compared";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenScheduleTest, ::testing::ValuesIn(golden_cases("dit", "schedule")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenScheduleTest);

TEST(KeyedDrawsTest, ASamplesNoiseDependsOnItsPositionAlone) {
  const std::vector<std::uint64_t> all{4, 9, 5}, one{9};
  const auto together = keyed_noise(42, rng_stream::video_noise, all, {3, 5});
  EXPECT_TRUE(at::equal(together.narrow(0, 1, 1), keyed_noise(42, rng_stream::video_noise, one, {3, 5})));
  EXPECT_FALSE(at::equal(together[0], together[2]));
  EXPECT_FALSE(at::equal(together, keyed_noise(43, rng_stream::video_noise, all, {3, 5})));
  EXPECT_FALSE(at::equal(together, keyed_noise(42, rng_stream::action_noise, all, {3, 5})));
}

TEST(KeyedDrawsTest, NoiseIsStandardNormal) {
  const std::vector<std::uint64_t> positions{1, 2, 3, 4};
  const auto noise = keyed_noise(1, rng_stream::video_noise, positions, {20000}).to(at::kDouble);
  EXPECT_NEAR(noise.mean().item<double>(), 0.0, 5 / std::sqrt(80000.0));
  EXPECT_NEAR(noise.square().mean().item<double>(), 1.0, 5 * std::sqrt(2 / 80000.0));
}

TEST(KeyedDrawsTest, FramesOfABlockShareAnIdAndFrameZeroKeepsItsOwn) {
  std::vector<std::uint64_t> positions(200);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  const auto ids = draw_video_ids(42, rng_stream::video_timestep, positions, 5, 2);
  EXPECT_TRUE(at::equal(ids.select(1, 1), ids.select(1, 2)));
  EXPECT_TRUE(at::equal(ids.select(1, 3), ids.select(1, 4)));
  EXPECT_FALSE(at::equal(ids.select(1, 0), ids.select(1, 1)));
  EXPECT_GE(ids.min().item<std::int64_t>(), 0);
  EXPECT_LT(ids.max().item<std::int64_t>(), kScheduleSize);
  // uniform: the mean of 600 free draws, within five deviations
  const auto free = at::cat({ids.select(1, 0), ids.select(1, 1), ids.select(1, 3)}).to(at::kDouble);
  EXPECT_NEAR(free.mean().item<double>(), 499.5, 5 * 288.7 / std::sqrt(600.0));
  const auto actions = coupled_action_ids(ids, 2, 3);
  EXPECT_TRUE(at::equal(actions.select(1, 2), ids.select(1, 1)));
  EXPECT_TRUE(at::equal(actions.select(1, 3), ids.select(1, 3)));
}

TEST(FlowLossTest, APerfectVelocityCostsNothing) {
  const std::vector<std::uint64_t> positions{1, 2};
  const auto v = keyed_noise(1, 0, positions, {3, 5, 4, 6});
  EXPECT_EQ(video_flow_loss(v, v, at::ones({2, 5})).item<double>(), 0.0);
}

TEST(FlowLossTest, VideoLossIsTheWeightedMeanOfSquaresAndCropsTheTarget) {
  const auto target = at::zeros({1, 2, 3, 5, 4});
  const auto velocity = at::full({1, 2, 3, 4, 4}, 2.0);
  const auto weights = at::tensor({0.0, 1.0, 2.0}).unsqueeze(0);
  EXPECT_NEAR(video_flow_loss(velocity, target, weights).item<double>(), 4.0 * (0 + 1 + 2) / 3, 1e-6);
}

TEST(FlowLossTest, ActionLossDividesByPaddedDimensionsAndDropsUnrealSamples) {
  const auto velocity = at::full({2, 3, 32}, 1.0), target = at::zeros({2, 3, 32});
  auto mask = at::zeros({2, 3, 32}, at::TensorOptions().dtype(at::kBool));
  mask.narrow(2, 0, 8).fill_(true);
  const auto real = at::tensor({1, 0}).to(at::kBool), weights = at::ones({2, 3});
  // sample 0: 8 of 32 dimensions; sample 1 is not real
  EXPECT_NEAR(action_flow_loss(velocity, target, mask, real, weights).item<double>(), 8.0 / 32.0 / 2.0, 1e-7);
}

TEST(FlowLossTest, ShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(video_flow_loss(at::zeros({1, 2, 3, 4, 4}), at::zeros({1, 2, 3, 2, 4}), at::ones({1, 3})), c10::Error);
  // real per sample, not per sample and row
  EXPECT_THROW(action_flow_loss(at::zeros({2, 3, 4}), at::zeros({2, 3, 4}), at::ones({2, 3, 4}), at::ones({2, 1}),
                                at::ones({2, 3})),
               c10::Error);
}

}  // namespace
}  // namespace troupe::model

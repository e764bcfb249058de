// UniPC and the rules of step skipping against the reference's own numbers (golden/dit, kinds unipc and skip_logic).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <charconv>

#include "model/wan/infer/infer_options.h"
#include "model/wan/infer/unipc.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr double kShift = 5.0;       // of every recorded list (6.1)
constexpr double kFinalNoise = 0.8;  // of the decoupled list (6.6)
constexpr double kScalars = 1e-5;    // sigmas and the corrector's weights, by the folder's README

at::Tensor sigmas_of(const NoiseLevels& levels) { return at::tensor(levels.sigmas); }
at::Tensor timesteps_of(const NoiseLevels& levels) { return at::tensor(levels.timesteps); }

std::shared_ptr<const UniPcPlan> plan_of(std::int64_t steps) {
  return std::make_shared<const UniPcPlan>(shifted_levels(steps, kShift));
}

/// The number at the end of a name such as "timesteps16".
std::optional<std::int64_t> steps_in(const std::string& name, const std::string& prefix) {
  std::int64_t steps = 0;
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  const auto* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, steps);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(steps) : std::nullopt;
}

/// What a case says about its runs.
const nlohmann::json& meta_of(const GoldenCase& source) {
  static const nlohmann::json kNone = nlohmann::json::object();
  const auto meta = source.json.find("meta");
  return meta == source.json.end() ? kNone : *meta;
}

class GoldenUniPcTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  TensorMap all = testing::load_safetensors(GetParam().tensors());
  TensorMap in = testing::with_prefix(all, "in."), out = testing::with_prefix(all, "out.");
};

TEST_P(GoldenUniPcTest, TheCaseRecordsWhatThisFileCompares) {
  bool known = false;
  for (const auto& [name, tensor] : out) {
    for (const char* part : {"timesteps", "sigmas", "corrector_rho", ".fp32"}) {
      known = known || name.find(part) != std::string::npos;
    }
  }
  EXPECT_TRUE(known) << "the case has no output to compare";
}

TEST_P(GoldenUniPcTest, NoiseLevelsMatchTheReference) {
  int compared = 0;
  for (const auto& [name, want] : out) {
    SCOPED_TRACE(name);
    if (const auto n = steps_in(name, "timesteps")) {
      EXPECT_TRUE(at::equal(timesteps_of(shifted_levels(*n, kShift)), want));
    } else if (const auto s = steps_in(name, "sigmas")) {
      expect_near(sigmas_of(shifted_levels(*s, kShift)), want, kScalars, name);
    } else if (const auto d = steps_in(name, "decoupled_timesteps")) {
      EXPECT_TRUE(at::equal(timesteps_of(decoupled_levels(shifted_levels(*d, kShift), kFinalNoise)), want));
    } else if (const auto e = steps_in(name, "decoupled_sigmas")) {
      expect_near(sigmas_of(decoupled_levels(shifted_levels(*e, kShift), kFinalNoise)), want, kScalars, name);
    } else {
      continue;
    }
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " records no noise levels";
}

TEST_P(GoldenUniPcTest, CorrectorWeightsMatchTheReference) {
  int compared = 0;
  for (const auto& [name, want] : out) {
    const auto steps = steps_in(name, "corrector_rho");
    if (!steps) continue;
    const auto plan = plan_of(*steps);
    std::vector<float> got;
    for (std::int64_t i = 0; i < *steps; ++i) {
      if (plan->step(i).corrector.order != 2) continue;
      got.push_back(plan->step(i).rho_before);
      got.push_back(plan->step(i).rho_now);
    }
    expect_near(at::tensor(got).view({-1, 2}), want, kScalars, name);
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " records no corrector weights";
}

/// Whole trajectories on recorded velocities: within the tolerance, and the same bits where the reference's arithmetic
/// library is ours; how many is printed.
TEST_P(GoldenUniPcTest, TrajectoriesMatchTheReference) {
  const auto tolerance =
      GetParam().json.value("recommended_abs_tolerance", nlohmann::json::object()).value("fp32", 2e-5);
  int compared = 0, equal = 0, steps_seen = 0;
  for (const auto& [name, velocity] : in) {
    const auto dot = name.find(".velocity");
    if (dot == std::string::npos) continue;
    const auto run = name.substr(0, dot);
    if (out.count(run + ".fp32") == 0) continue;
    const auto& want = out.at(run + ".fp32");
    const auto plan = plan_of(velocity.size(0));
    UniPcSampler sampler(plan, in.at(run + ".sample"));
    for (std::int64_t i = 0; i < velocity.size(0); ++i) {
      sampler.advance(velocity[i]);
      expect_near(sampler.sample(), want[i], tolerance, run + " step " + std::to_string(i));
      equal += at::equal(sampler.sample(), want[i]) ? 1 : 0;
      ++steps_seen;
    }
    EXPECT_TRUE(sampler.done());
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " records no trajectory";
  std::cout << equal << " of " << steps_seen << " samples have the reference's bits\n";
}

TEST_P(GoldenUniPcTest, PredictorOrdersMatchTheReference) {
  if (meta_of(GetParam()).empty()) GTEST_SKIP() << GetParam().name << " records no orders";
  for (const auto& [run, meta] : meta_of(GetParam()).items()) {
    if (!meta.contains("predictor_order")) continue;
    const auto want = meta.at("predictor_order").get<std::vector<int>>();
    const auto plan = plan_of(static_cast<std::int64_t>(want.size()));
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(plan->step(static_cast<std::int64_t>(i)).predictor.order, want[i]) << run << " step " << i;
    }
  }
}

/// bf16 samples stay as near to the f32 trajectory as the reference's own.
TEST_P(GoldenUniPcTest, Bf16TrajectoriesStayWithinTwiceTheReferencesOwnError) {
  int compared = 0;
  for (const auto& [run, meta] : meta_of(GetParam()).items()) {
    if (!meta.contains("bf16_vs_fp64") || in.count(run + ".velocity") == 0 || out.count(run + ".fp32") == 0) continue;
    const auto& velocity = in.at(run + ".velocity");
    UniPcSampler sampler(plan_of(velocity.size(0)), in.at(run + ".sample").to(at::kBFloat16));
    std::vector<at::Tensor> samples;
    for (std::int64_t i = 0; i < velocity.size(0); ++i) {
      sampler.advance(velocity[i].to(at::kBFloat16));
      samples.push_back(sampler.sample());
    }
    EXPECT_LE(testing::relative_l2(at::stack(samples), out.at(run + ".fp32")),
              2 * meta.at("bf16_vs_fp64").at("rel_l2").get<double>())
        << run;
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " has no bf16 numbers";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenUniPcTest, ::testing::ValuesIn(golden_cases("dit", "unipc")), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenUniPcTest);

class GoldenSkipLogicTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenSkipLogicTest, FixedMasksMatchTheReference) {
  if (!GetParam().json.contains("fixed_masks")) GTEST_SKIP() << GetParam().name << " has no fixed masks";
  for (const auto& [name, mask] : GetParam().json.at("fixed_masks").items()) {
    // the reference runs every step for a number it has no mask for; we refuse the name
    const auto known = to_step_skip(name);
    StepSkipRule rule(known ? known.value() : StepSkip::none);
    std::vector<bool> got;
    for (std::size_t i = 0; i < mask.size(); ++i) got.push_back(rule.evaluates());
    EXPECT_EQ(got, mask.get<std::vector<bool>>()) << name << " steps";
  }
}

TEST_P(GoldenSkipLogicTest, DynamicDecisionsMatchTheReference) {
  if (!GetParam().json.contains("dynamic")) GTEST_SKIP() << GetParam().name << " has no dynamic decisions";
  std::size_t index = 0;
  for (const auto& item : GetParam().json.at("dynamic")) {
    StepSkipRule rule(StepSkip::dynamic);
    std::vector<bool> got;
    for (const auto& velocity : item.at("velocity_if_evaluated")) {
      got.push_back(rule.evaluates());
      if (got.back()) rule.record(at::tensor(velocity.get<std::vector<float>>()).unsqueeze(0));
    }
    EXPECT_EQ(got, item.at("evaluated").get<std::vector<bool>>()) << "list " << index;
    ++index;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSkipLogicTest, ::testing::ValuesIn(golden_cases("dit", "skip_logic")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSkipLogicTest);

}  // namespace
}  // namespace troupe::model

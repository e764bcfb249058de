#include "configs/warnings.h"

#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

/// The one warning of a job that loads.
std::string only_warning(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const LoadOutcome outcome = load(yaml, overrides);
  job_of(outcome);
  if (!outcome.config) return {};
  EXPECT_EQ(outcome.config->warnings.size(), 1u);
  return outcome.config->warnings.empty() ? "" : outcome.config->warnings.front();
}

TEST(WarningsTest, APlainJobHasNone) {
  const LoadOutcome outcome = load(kTiny);
  job_of(outcome);
  EXPECT_TRUE(outcome.config->warnings.empty());
}

TEST(WarningsTest, ThePresetThatTrainsFromRandomValuesHasTheRateThatIsRecommended) {
  const JobConfig job = job_of(load(kTiny));
  EXPECT_EQ(job.model.init.mode, "random");
  EXPECT_EQ(job.optimizer.lr, kLrFromRandom);
}

TEST(WarningsTest, ARateForFineTuningOnRandomValuesShowsItsPlaceAndTheRateOfThePreset) {
  EXPECT_EQ(only_warning(kTiny + "optimizer: {lr: 1.0e-5}\n"),
            "my.yaml:2:17: warning: optimizer.lr: 1e-05 is a rate for fine-tuning; with model.init.mode random the "
            "model starts from random values and hardly learns below 0.0001\n"
            "    2 | optimizer: {lr: 1.0e-5}\n"
            "      |                 ^~~~~~\n"
            "      fix: optimizer.lr=0.003, as in presets/dreamzero_tiny.yaml, or start from weights with model.init");
  EXPECT_TRUE(contains(only_warning(kTiny, {"~optimizer.lr"}), "my.yaml: warning: optimizer.lr: 1e-05 is a rate"));
}

TEST(WarningsTest, TheSameRateOnTrainedWeightsIsSilent) {
  const LoadOutcome outcome = load(kTiny, {"optimizer.lr=1e-5", "model.init={mode: checkpoint, path: runs/a}"});
  job_of(outcome);
  EXPECT_TRUE(outcome.config->warnings.empty());
}

TEST(WarningsTest, ARateOfZeroTrainsNothing) {
  EXPECT_TRUE(
      contains(only_warning(kTiny, {"optimizer.lr=0"}), "command line: warning: optimizer.lr: 0 trains nothing"));
  EXPECT_TRUE(contains(only_warning("job: {kind: rl}\nenv: {id: CartPole-v1}\noptimizer: {lr: 0}\n"),
                       "my.yaml:3:17: warning: optimizer.lr: 0 trains nothing"));
}

TEST(WarningsTest, ASecondMomentInBf16ThatHardlyFallsIsDoubted) {
  EXPECT_TRUE(contains(only_warning(kTiny, {"optimizer.moments=bf16", "optimizer.betas=[0.9, 0.999]"}),
                       "with betas[1] 0.999 a second moment kept in bf16 hardly falls"));
  const LoadOutcome silent = load(kTiny, {"optimizer.moments=bf16", "optimizer.betas=[0.9, 0.99]"});
  job_of(silent);
  EXPECT_TRUE(silent.config->warnings.empty());
}

TEST(WarningsTest, ARateThatNothingSurvivesIsDoubtedInEveryKindOfJob) {
  EXPECT_TRUE(contains(only_warning(kTiny, {"optimizer.lr=1000"}),
                       "command line: warning: optimizer.lr: 1000 is so large that training nearly always diverges"));
  EXPECT_TRUE(contains(only_warning("job: {kind: rl}\nenv: {id: CartPole-v1}\noptimizer: {lr: 1}\n"),
                       "fix: optimizer.lr=0.003"));
}

TEST(WarningsTest, AdaptersOnRandomWeightsAreDoubted) {
  const std::string warning = only_warning(kTiny + "model: {train_architecture: lora}\n");
  EXPECT_TRUE(contains(warning, "my.yaml:2:29: warning: model.train_architecture: lora trains adapters on weights"));
  EXPECT_TRUE(contains(warning, "      fix: model.train_architecture=full, or model.init.mode=dreamzero"));
}

TEST(WarningsTest, ADatasetThatIsNamedTwiceIsDoubted) {
  const std::string warning =
      only_warning(kTiny + "data: {sets: [{path: data/a}, {path: data/b}, {path: data/../data/a/}]}\n");
  EXPECT_TRUE(contains(warning, "warning: data.sets[2].path: 'data/../data/a/' is data.sets[0] again"));
  const LoadOutcome halves =
      load(kTiny + "data: {sets: [{path: d, episodes: [0, 1]}, {path: d, episodes: [2], weight: 3}]}\n");
  job_of(halves);
  EXPECT_TRUE(halves.config->warnings.empty()) << "no episode is in both";
}

}  // namespace
}  // namespace troupe::configs

#include "workers/report/rl_report.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RlReportTest, TheProgressLineNamesTheBottleneckAndWhatIsKnown) {
  const std::string text = rl_progress_text({.name = "cart",
                                             .step = 10,
                                             .total_steps = 80,
                                             .env_steps = 20480,
                                             .env_steps_per_second = 34100,
                                             .mean_return = 123.4,
                                             .mean_length = 123.4,
                                             .approx_kl = 0.012,
                                             .seconds_per_step = 0.06,
                                             .stall_percent = 61,
                                             .bottleneck = "env",
                                             .remaining_seconds = 4.2});
  EXPECT_THAT(text, HasSubstr("iteration 10/80"));
  EXPECT_THAT(text, HasSubstr("env steps 20,480"));
  EXPECT_THAT(text, HasSubstr("return 123.4"));
  EXPECT_THAT(text, HasSubstr("bottleneck: env"));
  EXPECT_THAT(text, Not(HasSubstr("success"))) << "an environment without success has none";
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(RlReportTest, PhasesAreAThirdLineBelowTheOthers) {
  const RlProgressLine line{.name = "cart", .step = 1, .total_steps = 2, .phases = {"rollout: ...", "learner: ..."}};
  EXPECT_THAT(rl_progress_text(line), EndsWith("\n       rollout: ...  learner: ...\n"));
  EXPECT_THAT(rl_progress_text(line, {.width = 30}), EndsWith("\n       rollout: ...\n       learner: ...\n"));
}

// Values of the closed form, computed by hand: 8 of 10 gives (0.4902, 0.9433).
TEST(WilsonIntervalTest, MatchesTheClosedForm) {
  const Interval eight = wilson_interval(8, 10);
  EXPECT_NEAR(eight.low, 0.490162, 1e-5);
  EXPECT_NEAR(eight.high, 0.943318, 1e-5);
  const Interval none = wilson_interval(0, 100);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.036994, 1e-5);
}

TEST(WilsonIntervalTest, IsSymmetricAndNeverLeavesTheUnitInterval) {
  for (std::int64_t k = 0; k <= 20; ++k) {
    const Interval a = wilson_interval(k, 20), b = wilson_interval(20 - k, 20);
    EXPECT_NEAR(a.low, 1 - b.high, 1e-12);
    EXPECT_GE(a.low, 0);
    EXPECT_LE(a.high, 1);
    EXPECT_LE(a.low, static_cast<double>(k) / 20);
    EXPECT_GE(a.high, static_cast<double>(k) / 20);
  }
}

TEST(WilsonIntervalTest, KnowsNothingWithoutTrials) {
  const Interval nothing = wilson_interval(0, 0);
  EXPECT_EQ(nothing.low, 0);
  EXPECT_EQ(nothing.high, 1);
}

TEST(RlReportTest, TheTableSaysWhetherTheTaskIsSolved) {
  EpisodeResults results{.env = "CartPole-v1",
                         .episodes = 100,
                         .max_steps = 500,
                         .chunk = 1,
                         .mean_return = 498,
                         .std_return = 5,
                         .min_return = 470,
                         .max_return = 500,
                         .mean_length = 498};
  EXPECT_THAT(results_table(results), Not(HasSubstr("solved")));
  EXPECT_THAT(results_table(results), Not(HasSubstr("lost")));
  results.lost = 3;
  EXPECT_THAT(results_table(results), HasSubstr("lost      3/103 episodes"));
  results.threshold = 475;
  EXPECT_THAT(results_table(results), HasSubstr("solved    yes (mean return 498 > 475)"));
  results.threshold = 499;
  EXPECT_THAT(results_table(results), HasSubstr("solved    no"));
}

TEST(RlReportTest, TheTableCountsSuccesses) {
  const EpisodeResults results{.env = "reach-v1", .episodes = 10, .max_steps = 50, .chunk = 4, .successes = 8};
  EXPECT_THAT(results_table(results), HasSubstr("success   8/10 = 80.0%   95% interval 49.0% to 94.3% (Wilson)"));
}

}  // namespace
}  // namespace troupe::workers

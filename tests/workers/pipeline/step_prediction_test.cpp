#include "workers/pipeline/step_prediction.h"

#include <gmock/gmock.h>

#include "configs/loader.h"
#include "placement/pretend.h"
#include "placement/recompute_plan.h"
#include "workers/pipeline/model_cost.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

std::vector<PredictedPlan> plans_of(const std::string& recipe, const std::string& cluster,
                                    const std::vector<std::string>& overrides = {}) {
  const LoadOutcome loaded = load_job(recipe, overrides);
  EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
  const JobConfig& job = loaded.config->job;
  return predicted_plans(*pretend_cluster(cluster), job, model_cost(job, {}).value()).value();
}

TEST(StepPredictionTest, TheFiveBillionModelsRateIsThatOfItsWorkAtTheAssumedRates) {
  const auto plans = plans_of("recipes/dreamzero_5b_droid.yaml", "8xH200");
  ASSERT_FALSE(plans.empty());
  const StepPrediction& best = plans.front().prediction;
  // nothing recomputed: 41 ms of products and 7 of attention a sample untrimmed at these rates, trimmed about a tenth
  // less, some milliseconds of memory traffic, and an update of 27 GB / 8 of states
  EXPECT_GT(best.samples_per_second, 12);
  EXPECT_LT(best.samples_per_second, 1 / 0.044);
  EXPECT_NEAR(best.mfu, 30.33e12 * best.samples_per_second / 989.4e12, 0.002);
  EXPECT_GE(best.hfu, 0.85 * best.mfu) << "trimming runs a tenth less than is counted";
}

TEST(StepPredictionTest, PlansAreOrderedByTheirRateAndFit) {
  for (const char* recipe : {"recipes/dreamzero_5b_droid.yaml", "recipes/dreamzero_14b_droid.yaml",
                             "recipes/dreamzero_14b_droid_lora.yaml"}) {
    for (const char* cluster : {"8xH200", "8xH100"}) {
      const auto plans = plans_of(recipe, cluster);
      ASSERT_FALSE(plans.empty()) << recipe << " " << cluster;
      EXPECT_EQ(plans.front().change, "");
      for (std::size_t i = 1; i < plans.size(); ++i) {
        // what the job does not allow as it is may be faster than what it allows
        if (i == 1 && !plans[1].change.empty()) continue;
        EXPECT_GE(plans[i - 1].prediction.samples_per_second, plans[i].prediction.samples_per_second);
      }
      EXPECT_THAT(to_text(plans),
                  ::testing::AllOf(HasSubstr("predicted"), HasSubstr("not measured"), HasSubstr("MFU")));
    }
  }
}

TEST(StepPredictionTest, OtherSlotsAndOffloadAreTriedAndSayWhatTheJobWouldHaveToSay) {
  const auto plans = plans_of("recipes/dreamzero_14b_droid.yaml", "8xH100", {"parallelism.mode=zero3"});
  ASSERT_FALSE(plans.empty());
  const auto with = [&](const std::string& change) {
    return std::find_if(plans.begin(), plans.end(), [&](const PredictedPlan& plan) { return plan.change == change; });
  };
  // memory for what offload takes away is filled with what need not run again
  ASSERT_NE(with("offload.states=true"), plans.end());
  EXPECT_NE(recompute_text(with("offload.states=true")->plan), recompute_text(plans.front().plan));
  EXPECT_EQ(plans.front().change, "");
  ASSERT_EQ(plans[1].change, "offload.states=true") << "faster than what the job says";
  EXPECT_THAT(to_text(plans), HasSubstr("next: zero3 with offload.states=true: "));
}

TEST(StepPredictionTest, LevelsCostWhatTheyRunAgain) {
  const auto rate = [](const char* mode) {
    return plans_of("recipes/dreamzero_14b_droid.yaml", "8xH200",
                    {"parallelism.mode=zero3", std::string("activation_checkpoint.mode=") + mode})
        .front()
        .prediction;
  };
  const StepPrediction attention = rate("attention"), full = rate("full");
  EXPECT_GT(attention.samples_per_second, full.samples_per_second);
  // full runs the forward's attention once more: 3.5 times it became 4.5
  EXPECT_NEAR(full.timing.attention / attention.timing.attention, 4.5 / 3.5, 0.02);
  EXPECT_NEAR(full.timing.products, attention.timing.products, 1e-9 * full.timing.products);
}

TEST(StepPredictionTest, NothingIsPredictedForCoresOrUnknownDevices) {
  EXPECT_TRUE(plans_of("presets/dreamzero_tiny.yaml", "cpu16-64G", {"precision.param=bf16"}).empty());
  EXPECT_TRUE(plans_of("recipes/dreamzero_5b_droid.yaml", "8xB200").empty());
}

}  // namespace
}  // namespace troupe::workers

// Jobs on devices that take long.
#include <chrono>

#include "tests/app/device_fixture.h"

namespace troupe::app {
namespace {

TEST_F(DeviceRunTest, FiftyKillsWithinCollectivesLeaveTheSameWeights) {
  deadline_ = std::chrono::minutes(30);
  expect_kills_leave_the_same_weights(80, 50);
}

TEST_F(DeviceRunTest, TheQuickstartOnTwoDevicesFollowsTwoLearnersOnCores) {
  deadline_ = std::chrono::hours(2);
  const auto losses = [&](const std::string& root, const Words& where, const Environment& environment) {
    expect_end(troupe(Words{"run", "quickstart:sft", "training.steps=50", "eval.every=0", "metrics.every=1",
                            "eval.open_loop.at_end=false", "job.run_root=" + root} +
                          where,
                      environment),
               0, {"RUN COMPLETE"});
    return curve("train/loss", root);
  };
  const auto cores = losses("cores", {"cluster.component_placement.learner=0:0-1"}, {});
  const auto devices = losses("devices", on_devices("0-1"), machine("H200,H200"));
  ASSERT_EQ(cores.size(), 50U);
  ASSERT_EQ(devices.size(), 50U);
  for (const auto& [step, loss] : cores)
    EXPECT_NEAR(devices.at(step), loss, (step <= 10 ? 1e-5 : 1e-3) * loss) << "step " << step;
  EXPECT_EQ(findings(), "");
}

}  // namespace
}  // namespace troupe::app

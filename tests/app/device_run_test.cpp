// Jobs on devices, on the stand-ins of NVIDIA's libraries.
#include "tests/app/device_fixture.h"

namespace troupe::app {
namespace {

TEST_F(DeviceRunTest, TrainsAsOnCores) { expect_trains_as_on_cores("0", machine("H200")); }

TEST_F(DeviceRunTest, GoesOnFromACheckpointOfCores) {
  expect_end(run_small(job() + Words{"cluster.component_placement.learner=0:0", "job.run_root=cores"}), 0);
  const Words half{"training.steps=2", "checkpoint.interval=2"};
  expect_end(run_small(job() + half + Words{"cluster.component_placement.learner=0:0"}), 0);
  expect_end(run_small(Words{"--resume", "auto"} + job() + on_devices("0"), machine("H200")), 0);
  expect_close(curve("train/loss", "cores"), curve("train/loss"));
  EXPECT_EQ(findings(), "");
}

TEST_F(DeviceRunTest, AKilledLearnerIsStartedAgainWithTheSameWeights) {
  auto struck = machine("H200");
  struck["TROUPE_FAULT"] = "learner.step@learner/0#0 step 3:kill";
  expect_same_weights(on_devices("0") + Words{"checkpoint.interval=2"}, machine("H200"), struck, 1);
}

TEST_F(DeviceRunTest, TwoLearnersExchangeOverNcclAsOnCores) { expect_trains_as_on_cores("0-1", machine("H200,H200")); }

TEST_F(DeviceRunTest, TheKillOfALearnerFreesThePeerThatNcclLeavesWaiting) {
  auto struck = machine("H200,H200");
  struck["TROUPE_STANDIN_LOST_PEERS"] = "hang";
  struck["TROUPE_FAULT"] = "learner.step@learner/1#0 step 3:kill";
  expect_same_weights(on_devices("0-1") + Words{"checkpoint.interval=2"}, machine("H200,H200"), struck, 1);
}

TEST_F(DeviceRunTest, GraphsChangeNoBit) {
  expect_end(run_small(job() + on_devices("0") + Words{"training.cuda_graphs=false", "job.run_root=by-kernel"},
                       machine("H200")),
             0);
  expect_end(run_small(job() + on_devices("0"), machine("H200")), 0);
  EXPECT_TRUE(exported() == exported("by-kernel"));
  EXPECT_EQ(findings(), "");
}

TEST_F(DeviceRunTest, KillsWithinCollectivesLeaveTheSameWeights) { expect_kills_leave_the_same_weights(10, 5); }

TEST_F(DeviceRunTest, APolicyAnswersFromADevice) {
  expect_end(run_small(job() + Words{"training.steps=1", "cluster.component_placement.learner=0:0"}), 0);
  const Words test{"serve", dir_ / "runs/latest", "--once-selftest", "--steps", "2"};
  expect_end(troupe(test + Words{"--device", "0"}, machine("H200")), 0, {"self-test ok: actions"},
             {"the policy's transformer computes on device 0"});
  EXPECT_EQ(findings(), "");
  expect_end(troupe(test, machine("H200")), 0, {"self-test ok: actions"},
             {"the policy's transformer computes on device 0"});
  expect_end(troupe(test), 0, {"self-test ok: actions"},
             {"the policy computes on cores: this machine shows no NVIDIA device"});
  expect_end(troupe(test + Words{"--device", "1"}, machine("H200")), 2, {},
             {"the policy's device is 1, but this machine's last device is 0; wanted auto, cores or another"});
  expect_end(troupe(test + Words{"--device", "0"}), 2, {},
             {"the policy's device is 0, but this machine shows no NVIDIA device; wanted auto, cores or another"});
  expect_end(troupe(test + Words{"--device", "fast"}), 2, {}, {"wanted auto, cores or the number of a device"});
}

TEST_F(DeviceRunTest, SaysWhatADeviceCannotDo) {
  expect_end(run_small(job() + on_devices("0") + Words{"model.dit.dim=24"}, machine("H200")), 3, {},
             {"heads of 12 channels; attention on devices takes 16, 32, 64 and 128"});
  expect_end(run_small(job() + on_devices("0") + Words{"optimizer.name=sophia"}, machine("H200")), 3, {},
             {"optimizer.name sophia: learners on devices update by adamw"});
  auto without = machine("H200");
  without["TROUPE_DEVICE_MODULE"] = "/nowhere.so";
  expect_end(run_small(job() + on_devices("0"), without), 3, {},
             {"the module for GPUs cannot be loaded: /nowhere.so: cannot open shared object file"});
}

}  // namespace
}  // namespace troupe::app

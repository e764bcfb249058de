// Jobs on devices, on the stand-ins of NVIDIA's libraries: NVML shows a device, the module computes on it.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using Words = std::vector<std::string>;

class DeviceRunTest : public RunTest {
 protected:
  static Words job() {
    return {"training.steps=4", "eval.every=0",          "metrics.every=1",
            "model.dit.dim=32", "model.dit.num_heads=2", "cluster.isolation.learner=process"};
  }
  /// Numbers of a placement count devices, but for roles that are placed by nodes.
  static Words on_devices(const std::string& which) {
    return {"cluster.component_placement.learner=" + which,
            "cluster.component_placement.decoder={node_group: node, placement: \"0:0-1\"}",
            "cluster.component_placement.checkpointer={node_group: node, placement: \"0\"}"};
  }
  std::map<std::string, std::string> machine(const std::string& devices) const {
    return {{"TROUPE_NVML", NVML_STANDIN},
            {"TROUPE_DEVICE_MODULE", CUDA_STANDIN},
            {"TROUPE_STANDIN_DEVICES", devices},
            {"TROUPE_STANDIN_FINDINGS", dir_ / "findings"},
            {"CUDA_VISIBLE_DEVICES", "0,1"}};
  }
  std::string findings() const {
    std::ifstream in(dir_ / "findings");
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(DeviceRunTest, TrainsAsOnCores) {
  expect_end(run_small(job() + Words{"cluster.component_placement.learner=0:0", "job.run_root=cores"}), 0);
  expect_end(run_small(job() + on_devices("0"), machine("H200")), 0, {"RUN COMPLETE"});
  expect_close(curve("train/loss", "cores"), curve("train/loss"));
  expect_verified(16);
  EXPECT_EQ(findings(), "");
}

TEST_F(DeviceRunTest, GoesOnFromACheckpointOfCores) {
  expect_end(run_small(job() + Words{"cluster.component_placement.learner=0:0", "job.run_root=cores"}), 0);
  const Words half{"training.steps=2", "checkpoint.interval=2"};
  expect_end(run_small(job() + half + Words{"cluster.component_placement.learner=0:0"}), 0);
  expect_end(run_small(Words{"--resume", "auto"} + job() + on_devices("0"), machine("H200")), 0);
  expect_close(curve("train/loss", "cores"), curve("train/loss"));
  EXPECT_EQ(findings(), "");
}

TEST_F(DeviceRunTest, AKilledLearnerIsStartedAgainWithTheSameWeights) {
  const Words words = job() + on_devices("0") + Words{"checkpoint.interval=2", "cluster.restart.backoff_initial_s=0.1"};
  expect_end(run_small(words + Words{"job.run_root=undisturbed"}, machine("H200")), 0);
  auto struck = machine("H200");
  struck["TROUPE_FAULT"] = "learner.step@learner/0#0 step 3:kill";
  expect_end(run_small(words, struck), 0, {"restarts 1"});
  expect_verified(16);
  EXPECT_TRUE(exported() == exported("undisturbed"));
  EXPECT_EQ(findings(), "");
}

TEST_F(DeviceRunTest, SaysWhatADeviceCannotDo) {
  expect_end(run_small(job() + on_devices("0-1"), machine("H200,H200")), 3, {},
             {"2 learners are planned on devices, and on devices ranks of this build do not exchange"});
  expect_end(run_small(job() + on_devices("0") + Words{"model.dit.dim=24"}, machine("H200")), 3, {},
             {"heads of 12 channels; attention on devices takes 16, 32, 64 and 128"});
  expect_end(run_small(job() + on_devices("0") + Words{"ema.decay=0.9"}, machine("H200")), 3, {},
             {"ema.decay: learners on devices keep no averages of the weights"});
  auto without = machine("H200");
  without["TROUPE_DEVICE_MODULE"] = "/nowhere.so";
  expect_end(run_small(job() + on_devices("0"), without), 3, {},
             {"the module for GPUs cannot be loaded: /nowhere.so: cannot open shared object file"});
}

}  // namespace
}  // namespace troupe::app

#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/app/run_fixture.h"

namespace troupe::app {

/// Jobs on devices, on the stand-ins of NVIDIA's libraries: NVML shows devices, the module computes on them.
class DeviceRunTest : public RunTest {
 protected:
  using Words = std::vector<std::string>;
  using Environment = std::map<std::string, std::string>;
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
  Environment machine(const std::string& devices) const {
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

  /// Learners on these devices, and as many on cores.
  void expect_trains_as_on_cores(const std::string& devices, const Environment& on) {
    expect_end(run_small(job() + Words{"cluster.component_placement.learner=0:" + devices, "job.run_root=cores"}), 0);
    expect_end(run_small(job() + on_devices(devices), on), 0, {"RUN COMPLETE"});
    expect_close(curve("train/loss", "cores"), curve("train/loss"));
    expect_verified(16);
    EXPECT_EQ(findings(), "");
  }

  /// A run that is struck so many times ends with the weights of one that nothing happens to. `during`: between the
  /// two, changes what strikes.
  void expect_same_weights(const Words& overrides, const Environment& undisturbed, Environment struck, int kills,
                           std::int64_t steps = 4, const std::function<void(Environment&)>& during = nullptr) {
    const Words words = job() + Words{"cluster.restart.backoff_initial_s=0.1"} + overrides;
    expect_end(run_small(words + Words{"job.run_root=undisturbed"}, undisturbed), 0);
    if (during) during(struck);
    expect_end(run_small(words, struck), 0, {"restarts " + std::to_string(kills)});
    expect_verified(4 * steps);
    EXPECT_TRUE(exported() == exported("undisturbed"));
    EXPECT_EQ(findings(), "");
  }

  /// Kills of learners within operations of NCCL, every second of which it does not tell the peer of.
  void expect_kills_leave_the_same_weights(int steps, int kills) {
    auto counted = machine("H200,H200"), struck = counted;
    counted["TROUPE_STANDIN_KILLS"] = dir_ / "counted" + " 1000000000 0";
    struck["TROUPE_STANDIN_LOST_PEERS"] = "turns";
    const Words words =
        on_devices("0-1") + Words{"training.steps=" + std::to_string(steps), "checkpoint.interval=1",
                                  "cluster.restart.budget=1000", "cluster.restart.component_budget=1000",
                                  "cluster.restart.backoff_initial_s=0"};
    expect_same_weights(words, counted, struck, kills, steps, [&](Environment& strikes) {
      std::uint64_t operations = 0;
      std::ifstream(dir_ / "counted", std::ios::binary).read(reinterpret_cast<char*>(&operations), sizeof(operations));
      ASSERT_GT(operations, 0U);
      // more than a step, so that the job gets on, and at another place of a step each time
      const auto every = operations * 17 / (10 * static_cast<std::uint64_t>(steps)) + 1;
      strikes["TROUPE_STANDIN_KILLS"] = dir_ / "kills" + " " + std::to_string(every) + " " + std::to_string(kills);
    });
  }
};

}  // namespace troupe::app

// Adapters on a frozen base through the whole program: training, stopping and going on, exporting, and starting from
// other runs.
#include <csignal>

#include "tests/app/run_fixture.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::app {
namespace {

using Words = std::vector<std::string>;

const std::string kA = "blocks.0.self_attn.q.lora_A.default.weight", kB = "blocks.0.self_attn.q.lora_B.default.weight",
                  kW = "blocks.0.self_attn.q.weight";

class LoraRunTest : public RunTest {
 protected:
  static Words lora() { return {"model.train_architecture=lora", "model.lora.rank=2", "model.lora.alpha=3"}; }
  /// Folder of a fresh export of a run root's latest run.
  std::string export_of(const std::string& run_root) {
    const std::string folder = "weights-" + std::to_string(exports_++);
    expect_end(troupe({"export", run_root + "/latest", "--out", folder}), 0);
    return dir_ / (folder + "/model.safetensors");
  }
};

TEST_F(LoraRunTest, TwoHalvesEqualTheWholeToTheBitAndOnlyAdaptersMove) {
  const auto whole = run_small(lora() + Words{"job.run_root=whole"});
  ASSERT_TRUE(succeeded(whole));
  ASSERT_TRUE(succeeded(run_small(lora() + Words{"training.steps=10"})));
  const SafetensorsBytes middle(export_of("runs"));
  expect_end(run_small(lora() + Words{"--resume", "auto"}), 0, {"resuming at step 10"});
  expect_verified(80);
  EXPECT_TRUE(exported() == exported("whole"));
  EXPECT_EQ(curve("train/loss"), curve("train/loss", "whole"));

  const SafetensorsBytes end(export_of("runs"));
  EXPECT_EQ(end.at(kW).as<float>(), middle.at(kW).as<float>()) << "the base is frozen";
  EXPECT_NE(end.at(kB).as<float>(), middle.at(kB).as<float>());
  EXPECT_NE(end.at("action_decoder.layer2.W").as<float>(), middle.at("action_decoder.layer2.W").as<float>());
}

TEST_F(LoraRunTest, AKilledRunOfProcessesGoesOnOnAnotherNumberOfRanks) {
  const Words words =
      Words{"run", small_job(), "training.steps=200", "lr_scheduler.total_steps=200", "checkpoint.interval=5"} + lora();
  Program job(words + in_processes(), options());
  ASSERT_TRUE(job.wait_for_text("step  10/200")) << job.so_far().text();
  job.send_signal(SIGINT);
  expect_end(job.wait(), 130);
  expect_end(troupe(words + Words{"training.steps=40", "--resume", "auto", "cluster.component_placement.learner=0"}), 0,
             {"resuming at step"});
  expect_verified(160);
}

TEST_F(LoraRunTest, AdaptersStartOnATrainedModelAndAreFoldedInWhenTrainedWhole) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4", "job.run_root=base"})));
  const std::string base = dir_ / "base/latest/checkpoints/latest";
  ASSERT_TRUE(
      succeeded(run_small(lora() + Words{"training.steps=4", "model.init={mode: checkpoint, path: " + base + "}"})));
  const SafetensorsBytes before(export_of("base")), after(export_of("runs"));
  EXPECT_EQ(after.at(kW).as<float>(), before.at(kW).as<float>());

  const std::string adapters = dir_ / "runs/latest/checkpoints/latest";
  const auto whole = run_small({"training.steps=1", "optimizer.lr=0", "job.run_root=whole",
                                "model.init={mode: checkpoint, path: " + adapters + "}"});
  // the scale of the folded adapters is that of the checkpoint's own configuration: 3 / 2
  ASSERT_TRUE(succeeded(whole));
  const SafetensorsBytes folded(export_of("whole"));
  const auto w = after.at(kW).as<float>(), a = after.at(kA).as<float>(), b = after.at(kB).as<float>(),
             got = folded.at(kW).as<float>();
  const std::size_t width = static_cast<std::size_t>(after.at(kW).shape.at(1));
  ASSERT_EQ(w.size(), got.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::size_t row = i / width, column = i % width;
    const double want = w[i] + 1.5 * (double{b[2 * row]} * a[column] + double{b[2 * row + 1]} * a[width + column]);
    ASSERT_NEAR(got[i], want, 1e-6) << i;
  }
}

TEST_F(LoraRunTest, ACheckpointOfTheOtherArchitectureIsRefusedOnResumeByName) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  expect_end(run_small(lora() + Words{"training.steps=8", "--resume", "auto"}), 2, {}, {"model.train_architecture"});
}

}  // namespace
}  // namespace troupe::app

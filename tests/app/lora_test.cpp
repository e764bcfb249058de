// Adapters on a frozen base through the whole program: training, stopping and going on, exporting, and starting from
// other runs.
#include <csignal>
#include <filesystem>

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
  /// Of the latest run.
  std::filesystem::path checkpoints() const { return std::filesystem::canonical(dir_ / "runs/latest") / "checkpoints"; }
  std::vector<std::filesystem::path> bases() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints())) {
      if (entry.path().filename().string().starts_with("base")) found.push_back(entry.path());
    }
    return found;
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

TEST_F(LoraRunTest, TheBaseIsWrittenOnceAndEveryCheckpointNamesIt) {
  const Words often = lora() + Words{"checkpoint.interval=2", "checkpoint.keep=2"};
  ASSERT_TRUE(succeeded(run_small(often + Words{"training.steps=8"})));
  ASSERT_EQ(bases().size(), 1u);
  const auto base = bases().front();
  const auto written = files_below(base);
  EXPECT_EQ(written.count("rank-00001-of-00002.safetensors"), 1u);
  const auto time = std::filesystem::last_write_time(base / "rank-00000-of-00002.safetensors");
  // another number of ranks, which writes none of its own
  expect_end(run_small(often + Words{"training.steps=12", "--resume", "auto", "cluster.component_placement.learner=0"}),
             0, {"resuming at step 8"});
  ASSERT_EQ(bases(), std::vector{base});
  EXPECT_TRUE(files_below(base) == written);
  EXPECT_EQ(std::filesystem::last_write_time(base / "rank-00000-of-00002.safetensors"), time);
  EXPECT_FALSE(std::filesystem::exists(checkpoints() / "step_000008")) << "pruned, and its base is in use";
  expect_verified(48);
  ASSERT_TRUE(succeeded(troupe({"export", "runs/latest", "--format", "gear", "--out", "gear"})));
}

TEST_F(LoraRunTest, ACheckpointIsServedAndEvaluatedOnItsBaseWhereverBothLie) {
  ASSERT_TRUE(succeeded(run_small(lora() + Words{"training.steps=4", "checkpoint.interval=2"})));
  const std::filesystem::path copy = dir_ / "copy";
  std::filesystem::create_directories(copy);
  std::filesystem::copy(checkpoints() / "step_000004", copy / "step_000004", std::filesystem::copy_options::recursive);
  std::filesystem::copy(bases().at(0), copy / bases().at(0).filename(), std::filesystem::copy_options::recursive);
  std::filesystem::rename(bases().at(0), dir_ / "elsewhere");
  const std::string checkpoint = copy / "step_000004";
  expect_end(troupe({"serve", checkpoint, "--once-selftest", "--steps", "2"}), 0, {"self-test ok"});
  expect_end(troupe({"eval", checkpoint, "--open-loop", "--data", "data", "--windows", "1", "--steps", "2", "--out",
                     "evaluated"}),
             0);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "evaluated/eval.json"));
}

TEST_F(LoraRunTest, WithoutItsBaseNothingGoesOnAndTheFolderIsNamed) {
  ASSERT_TRUE(succeeded(run_small(lora() + Words{"training.steps=4", "checkpoint.interval=2"})));
  const auto base = bases().at(0);
  const auto fails_on_the_base = [&](const ProgramEnd& end) {
    EXPECT_NE(end.exit_code, 0) << end.text();
    EXPECT_NE(end.text().find(base.filename().string()), std::string::npos) << end.text();
  };
  const Words again = lora() + Words{"training.steps=8", "--resume", "auto"};
  std::filesystem::rename(base, dir_ / "elsewhere");
  fails_on_the_base(troupe({"export", "runs/latest", "--out", "weights"}));
  fails_on_the_base(troupe({"verify", "runs/latest"}));
  fails_on_the_base(run_small(again));
  const std::string checkpoint = checkpoints() / "step_000004";
  fails_on_the_base(troupe({"serve", checkpoint, "--once-selftest"}));
  fails_on_the_base(troupe({"eval", checkpoint, "--open-loop", "--data", "data", "--windows", "1"}));
  std::filesystem::rename(dir_ / "elsewhere", base);
  flip_byte(base / "rank-00000-of-00002.safetensors", 20'000);
  fails_on_the_base(troupe({"export", "runs/latest", "--out", "weights"}));
  fails_on_the_base(run_small(again));
  flip_byte(base / "rank-00000-of-00002.safetensors", 20'000);
  expect_end(run_small(again), 0, {"resuming at step 4"});
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

// A short run's checkpoint is evaluated on recordings and written in the layouts of others, and comes back the same.
#include <csignal>
#include <cstdlib>

#include "app/commands.h"
#include "model/io/safetensors.h"
#include "tests/app/run_fixture.h"
#include "workers/inference/policy/load_policy.h"

namespace troupe::app {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class EvalExportTest : public RunTest {
 protected:
  /// MKL adds in an order that depends on where a buffer lies, and weights of a mapped file lie elsewhere than tensors:
  /// equal bits only with this, which MKL reads once a process (ctest starts one for each case).
  static void SetUpTestSuite() { ::setenv("MKL_CBWR", "AUTO,STRICT", 1); }
  void train(const std::vector<std::string>& more = {}) {
    ASSERT_TRUE(succeeded(run_small(std::vector<std::string>{"training.steps=3", "checkpoint.interval=3"} + more)));
    run_ = std::filesystem::canonical(dir_ / "runs/latest");
    std::filesystem::current_path(dir_.path());  // where the job's paths begin
  }
  std::string path(const std::string& name) const { return dir_ / name; }

  EvalOptions eval_options(const std::string& checkpoint, const std::string& out = "") const {
    EvalOptions options;
    options.checkpoint = checkpoint;
    options.open_loop = true;
    options.data = path("data");
    options.windows = 2;
    options.out = out;
    options.policy.steps = 2;
    return options;
  }
  static int exported_to(const std::string& source, const std::string& out, const std::string& format,
                         bool merge = false) {
    ExportOptions options;
    options.source = source;
    options.out = out;
    options.format = format;
    options.merge_lora = merge;
    return export_command(options);
  }
  /// What a policy answers to two calls with made-up frames.
  static std::vector<float> actions(const std::string& checkpoint) {
    auto policy = load_policy(checkpoint, {.steps = 2});
    EXPECT_TRUE(policy) << policy.error().message();
    std::vector<float> out;
    for (const std::int64_t frames : {1, 9}) {
      Observation o{.episode = "e", .prompt = "pick up the red ball", .images = {}, .state = {}};
      for (const std::string& view : (*policy)->info().views) {
        NdArray image{.dtype = "|u1", .shape = {frames, 40, 40, 3}, .data = {}};
        for (std::int64_t i = 0; i < image.numel(); ++i) image.data.push_back(static_cast<std::byte>(i * 37 % 251));
        o.images[view] = std::move(image);
      }
      for (const PolicyVector& key : (*policy)->info().state) {
        o.state[key.name] = {.dtype = "<f4",
                             .shape = {key.width},
                             .data = std::vector<std::byte>(static_cast<std::size_t>(4 * key.width))};
      }
      auto result = (*policy)->act(std::span(&o, 1));
      EXPECT_TRUE(result[0]) << result[0].error().message();
      if (result[0]) out.insert(out.end(), result[0]->values.begin(), result[0]->values.end());
    }
    return out;
  }

  std::filesystem::path run_;
};

TEST_F(EvalExportTest, AnInterruptEndsAnEvaluationAtOnce) {
  train();
  ASSERT_EQ(exported_to(run_.string(), path("gear"), "gear"), 0);
  Program program({"eval", path("gear"), "--open-loop", "--data", path("data"), "--out", path("out"), "--steps", "1000",
                   "--windows", "1000"},
                  {.cwd = dir_.path(), .env = {}});
  ASSERT_TRUE(program.wait_for_text("no episode was held out")) << program.so_far().text();
  program.send_signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.signal, SIGINT) << end.text();
  EXPECT_FALSE(std::filesystem::exists(path("out/eval.json")));
}

TEST_F(EvalExportTest, ATrainedPolicyServesEveryProtocol) {
  train();
  for (const char* protocol : {"dreamzero", "openpi", "groot"}) {
    const ProgramEnd end =
        troupe({"serve", run_.string(), "--protocol", protocol, "--once-selftest", "--steps", "2", "--dtype", "bf16"});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    EXPECT_THAT(end.out, HasSubstr("self-test ok")) << protocol;
  }
}

TEST_F(EvalExportTest, ACheckpointIsEvaluatedAndExportedAndComesBackTheSame) {
  train();
  const std::string checkpoint = (run_ / "checkpoints/step_000003").string();

  // Twice the same evaluation, byte for byte.
  ASSERT_EQ(eval_command(eval_options(run_.string())), 0);
  const std::string first = text_of((run_ / "eval/step_000003/eval.json").string());
  ASSERT_EQ(eval_command(eval_options(checkpoint)), 0);
  EXPECT_EQ(first, text_of((run_ / "eval/step_000003/eval.json").string()));
  EXPECT_TRUE(std::filesystem::exists(run_ / "eval/step_000003/open_loop.png"));
  const json report = json::parse(first);
  EXPECT_EQ(report["windows_evaluated"], 2);
  EXPECT_EQ(report["episodes"], std::vector<int>{0}) << "the held-out one";
  EXPECT_EQ(report["dimensions"].size(), 4U);
  EXPECT_EQ(report["overall"]["count"], 2 * 2 * 8 * 4);
  EXPECT_EQ(report["overall"]["non_finite"], 0);
  EXPECT_GT(report["overall"]["mse"].get<double>(), 0);

  // The exported folder acts like the checkpoint, bit for bit.
  ASSERT_EQ(exported_to(run_.string(), path("gear"), "gear"), 0);
  for (const char* name :
       {"config.json", "model.safetensors", "experiment_cfg/metadata.json", "experiment_cfg/conf.yaml"}) {
    EXPECT_TRUE(std::filesystem::exists(path("gear/") + name)) << name;
  }
  const std::string card = text_of(path("gear/") + "README.md");
  for (const char* text : {"library_name: troupe", "| cameras |", "| open-loop mse |", "## Licence", "troupe serve "})
    EXPECT_NE(card.find(text), std::string::npos) << text << "\n" << card.substr(0, 2000);
  EXPECT_EQ(card.find(path("")), std::string::npos) << "no path of this machine is published:\n" << card;
  EXPECT_EQ(actions(path("gear")), actions(checkpoint));

  ASSERT_EQ(exported_to(run_.string(), path("plain"), "safetensors"), 0);
  EXPECT_THAT(text_of(path("plain/") + "README.md"), HasSubstr("load_file(\"model.safetensors\")"));
  std::filesystem::remove(path("plain/model.safetensors"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(exported_to(run_.string(), path("plain"), "safetensors"), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("README.md was there and is kept"));
  EXPECT_EQ(eval_command(eval_options(path("gear"))), 2) << "it lies in no run directory, so --out must be given";
}

TEST_F(EvalExportTest, DamageInTheNewestCheckpointIsSaidWithTheOneBeforeIt) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4", "checkpoint.interval=2"})));
  const std::string checkpoints = std::filesystem::canonical(dir_ / "runs/latest") / "checkpoints";
  const std::string file = checkpoints + "/step_000004/rank-00000-of-00002.safetensors";
  flip_byte(file, 20'000);
  const std::string cure = "name " + checkpoints + "/step_000002";
  expect_end(troupe({"serve", "runs/latest", "--once-selftest"}), 4, {}, {file, cure});
  expect_end(troupe({"eval", "runs/latest", "--open-loop", "--data", "data", "--windows", "1"}), 4, {}, {file, cure});
  for (const char* format : {"safetensors", "gear"})
    expect_end(troupe({"export", "runs/latest", "--format", format, "--out", "out"}), 4, {}, {file, cure});
  EXPECT_TRUE(files_below(path("out")).empty());
  expect_end(run_small({"job.name=next", "model.init.mode=checkpoint", "model.init.path=runs/latest"}), 4, {},
             {file, cure});
  EXPECT_EQ(exported_to(checkpoints + "/step_000002", path("out"), "safetensors"), 0);
}

TEST_F(EvalExportTest, AnExportedFolderIsEvaluatedLikeItsCheckpoint) {
  train();
  ASSERT_EQ(exported_to(run_.string(), path("gear"), "gear"), 0);
  EvalOptions a = eval_options(run_.string(), path("a")), b = eval_options(path("gear"), path("b"));
  a.episodes = b.episodes = {0};
  ASSERT_EQ(eval_command(a), 0);
  ASSERT_EQ(eval_command(b), 0);
  const json first = json::parse(text_of(path("a/eval.json"))), second = json::parse(text_of(path("b/eval.json")));
  EXPECT_EQ(first["options"], (json{{"sampler", "unipc"},
                                    {"steps", 2},
                                    {"cfg_scale", 5.0},
                                    {"noise_seed", 1140},
                                    {"skip", "none"},
                                    {"dtype", "fp32"},
                                    {"state_self_only", false},
                                    {"sign_gripper", false},
                                    {"weights", "model"},
                                    {"windows", 2}}));
  for (const char* key : {"overall", "dimensions", "steps", "windows"}) EXPECT_EQ(first[key], second[key]) << key;
}

TEST_F(EvalExportTest, AdaptersAreExportedInThreeForms) {
  train({"model.train_architecture=lora"});
  const std::string checkpoint = (run_ / "checkpoints/step_000003").string();
  ASSERT_EQ(exported_to(checkpoint, path("wrapped"), "gear"), 0);
  ASSERT_EQ(exported_to(checkpoint, path("merged"), "gear", true), 0);
  ASSERT_EQ(exported_to(checkpoint, path("alone"), "lora"), 0);

  const auto wrapped = SafetensorsReader::open(path("wrapped/model.safetensors"));
  ASSERT_TRUE(wrapped);
  EXPECT_TRUE(wrapped->contains("action_head.model.base_model.model.blocks.0.self_attn.q.base_layer.weight"));
  EXPECT_TRUE(wrapped->contains("action_head.model.base_model.model.blocks.0.self_attn.q.lora_A.default.weight"));
  EXPECT_TRUE(wrapped->contains("action_head.model.base_model.model.head.modulation"));
  const auto alone = SafetensorsReader::open(path("alone/model.safetensors"));
  ASSERT_TRUE(alone);
  EXPECT_TRUE(alone->contains("action_head.model.base_model.model.blocks.0.self_attn.q.lora_B.default.weight"));
  for (const std::string& name : alone->names()) EXPECT_EQ(name.find("base_layer"), std::string::npos) << name;
  EXPECT_EQ(json::parse(text_of(path("merged/config.json")))["action_head_cfg"]["config"]["train_architecture"],
            "full");

  const std::vector<float> own = actions(checkpoint);
  EXPECT_EQ(actions(path("merged")), own) << "both are folded in fp32 by the same rule";
  const std::vector<float> folded = actions(path("wrapped"));
  ASSERT_EQ(folded.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(folded[i], own[i], 1e-5);
}

TEST_F(EvalExportTest, WhatCannotBeDoneIsRefusedWithoutATrace) {
  train();
  EvalOptions options = eval_options(run_.string());
  options.open_loop = false;
  EXPECT_EQ(eval_command(options), 2);
  EXPECT_EQ(eval_command(eval_options(path("nowhere"))), 2);
  options = eval_options(run_.string());
  options.policy.skip = "11";
  EXPECT_EQ(eval_command(options), 2);
  options = eval_options(run_.string());
  options.episodes = {77};
  EXPECT_EQ(eval_command(options), 2);
  EXPECT_EQ(exported_to(run_.string(), path("x"), "onnx"), 2);
  EXPECT_EQ(exported_to(run_.string(), path("x"), "lora"), 2) << "nothing was adapted";
  EXPECT_FALSE(std::filesystem::exists(dir_ / "x"));
}

}  // namespace
}  // namespace troupe::app

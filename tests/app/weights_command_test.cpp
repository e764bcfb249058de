// `troupe doctor --model` and `troupe convert weights` as a user calls them: what they print, write, refuse and exit
// with.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands.h"
#include "tests/model/wan/weights/tiny_checkpoint.h"
#include "tests/support/folder_files.h"
#include "tests/support/program.h"
#include "tests/support/pth_bytes.h"
#include "tests/support/tensor_checks.h"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WeightsCommandTest : public testing::TinyCheckpointTest {
 protected:
  ProgramEnd troupe(const std::vector<std::string>& words, std::map<std::string, std::string> env = {}) const {
    return run_program(words, {.cwd = folder_.path(), .env = std::move(env)});
  }
  /// `troupe convert weights WORDS`
  ProgramEnd convert(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(), {"convert", "weights"});
    return troupe(words, std::move(env));
  }
  ProgramEnd doctor(const std::string& model) const { return troupe({"doctor", "--model", model}); }

  void store(const std::string& name, const Tensors& tensors) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    testing::write_safetensors(folder_ / name, tensors);
  }
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  Tensors load(const std::string& path, Component component) const {
    const auto source = WeightSource::open(folder_ / path);
    EXPECT_TRUE(source) << source.error().message();
    if (!source) return {};
    const auto loaded = load_component(*source, config_, component, at::kFloat);
    EXPECT_TRUE(loaded) << loaded.error().message();
    return loaded ? loaded->tensors : Tensors();
  }

  static void expect_end(const ProgramEnd& end, int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(end.exit_code, code) << end.text();
    for (const auto& part : parts) EXPECT_THAT(end.out + end.err, HasSubstr(part));
  }
  /// The conversion is refused before it writes anything.
  void expect_refused(const ProgramEnd& end, int code, const std::vector<std::string>& parts) const {
    expect_end(end, code, parts);
    EXPECT_FALSE(fs::exists(folder_ / "out")) << "a folder was made";
  }
  /// The number at the end of the row that begins with `what`.
  static std::string count_of(const ProgramEnd& end, const std::string& what) {
    std::istringstream lines(end.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  " + what + "  ")) return line.substr(line.rfind(' ') + 1);
    }
    return "no row " + what;
  }
  nlohmann::json gear_config() const {
    const auto& dit = config_.dit;
    return {{"model_type", "vla"},
            {"action_horizon", 24},
            {"action_dim", 32},
            {"action_head_cfg",
             {{"_target_", "somewhere"},
              {"config",
               {{"diffusion_model_cfg",
                 {{"model_type", dit.type},
                  {"dim", dit.dim},
                  {"ffn_dim", dit.ffn_dim},
                  {"num_layers", dit.num_layers},
                  {"in_dim", dit.in_dim},
                  {"out_dim", dit.out_dim},
                  {"freq_dim", dit.freq_dim}}}}}}}};
  }
};

TEST_F(WeightsCommandTest, DoctorCountsTheParametersOfThe5b) {
  const auto end = doctor("5b");
  ASSERT_EQ(end.exit_code, kOk) << end.text();
  EXPECT_EQ(count_of(end, "one block"), "182,540,288");
  EXPECT_EQ(count_of(end, "all blocks"), "5,476,208,640");
  EXPECT_EQ(count_of(end, "DiT total"), "5,606,692,832");
  EXPECT_EQ(count_of(end, "present in the Wan checkpoint"), "4,999,787,712");
  EXPECT_EQ(count_of(end, "newly initialised: CLIP path"), "572,091,136");
  EXPECT_EQ(count_of(end, "newly initialised: action and state modules"), "34,813,984");
  EXPECT_EQ(count_of(end, "frozen text encoder"), "5,680,910,336");
  EXPECT_EQ(count_of(end, "frozen image encoder, visual tower"), "632,076,800");
  EXPECT_EQ(count_of(end, "frozen VAE, total with its 1x1x1 convolutions"), "704,688,668");
  EXPECT_THAT(end.out, HasSubstr("dit: 997 tensors, 5,606,692,832 parameters, stored as action_head.model.*"));
  EXPECT_THAT(end.out, HasSubstr("blocks.N.self_attn.q.weight [3072, 3072], N = 0..29\n"));
}
TEST_F(WeightsCommandTest, DoctorCountsTheParametersOfThe14b) {
  const auto end = troupe({"doctor", "--model", "14b", "--markdown"});
  ASSERT_EQ(end.exit_code, kOk) << end.text();
  for (const char* row :
       {"| one block | 403,838,464 |", "| DiT total | 16,484,292,448 |",
        "| present in the Wan checkpoint | 16,394,878,784 |", "| newly initialised: CLIP path | 0 |",
        "| frozen VAE, encoder | 53,595,872 |", "| frozen VAE, total with its 1x1x1 convolutions | 126,892,531 |"}) {
    EXPECT_THAT(end.out, HasSubstr(row));
  }
}
TEST_F(WeightsCommandTest, DoctorCountsThePolicyOfAJobThatTrainsOne) {
  const auto end = doctor("quickstart:rl");
  ASSERT_EQ(end.exit_code, kOk) << end.text();
  EXPECT_EQ(count_of(end, "actor"), "4,610") << "4 numbers to 64, 64 and a choice of 2";
  EXPECT_EQ(count_of(end, "critic"), "4,545");
  EXPECT_EQ(count_of(end, "total"), "9,155");
  EXPECT_THAT(end.out, HasSubstr("CartPole-v1"));
}

TEST_F(WeightsCommandTest, DoctorComparesADreamZeroFolderWithItsConfig) {
  store("ckpt/model.safetensors", full_);
  auto config = gear_config();
  write("ckpt/config.json", config.dump());
  expect_end(
      doctor("ckpt"), kOk,
      {"missing 0, unexpected 0, misshapen 0", "config.json: model_type \"vla\"", "config.json: action_horizon 24",
       "config.json: dim 24", "config.json: num_layers 2", "config.json: DiT of type ti2v", "\nOK\n"});
  expect_end(doctor("ckpt/model.safetensors"), kOk, {"config.json: dim 24", "\nOK\n"});

  auto& dit = config["action_head_cfg"]["config"]["diffusion_model_cfg"];
  dit["num_layers"] = 40;
  dit["model_type"] = "i2v";
  write("ckpt/config.json", config.dump());
  expect_end(doctor("ckpt"), kUnhealthy,
             {"config.json contradicts the tensors: num_layers 40, the shapes say 2",
              "config.json contradicts the tensors: DiT of type i2v, the shapes say ti2v", "PROBLEMS FOUND"});
  write("ckpt/config.json", "{\"action_head_cfg\": ");
  expect_end(doctor("ckpt"), kUnhealthy, {"ckpt/config.json: not a JSON object"});
}
TEST_F(WeightsCommandTest, DoctorComparesAWanFolderWithItsConfig) {
  auto tensors = plain_[Component::dit];
  std::erase_if(tensors, [&](const auto& entry) { return is_new_in_dreamzero(config_, entry.first); });
  store("wan/diffusion_pytorch_model.safetensors", tensors);
  nlohmann::json config = gear_config()["action_head_cfg"]["config"]["diffusion_model_cfg"];
  config["_class_name"] = "WanModel";
  write("wan/config.json", config.dump());
  expect_end(doctor("wan"), kOk, {"missing 0", "config.json: ffn_dim 40", "new action_encoder.W1.W", "\nOK\n"});
  config["ffn_dim"] = 41;
  write("wan/config.json", config.dump());
  expect_end(doctor("wan"), kUnhealthy, {"config.json contradicts the tensors: ffn_dim 41, the shapes say 40"});
}
TEST_F(WeightsCommandTest, DoctorNamesWhatACheckpointLacks) {
  auto tensors = full_;
  tensors.erase("action_head.model.head.modulation");
  tensors["action_head.model.head.surprise"] = at::zeros({2});
  store("ckpt/model.safetensors", tensors);
  expect_end(doctor("ckpt"), kUnhealthy,
             {"missing 1, unexpected 1", "missing head.modulation", "unexpected head.surprise", "PROBLEMS FOUND"});
}
TEST_F(WeightsCommandTest, DoctorSaysWhyAPathIsNoCheckpoint) {
  fs::create_directories(folder_ / "empty");
  expect_end(doctor("empty"), kUnhealthy, {"empty holds none of model.safetensors"});
  expect_end(doctor("absent.safetensors"), kUsage, {"absent.safetensors does not exist"});
  expect_end(doctor("7b"), kUsage, {"'7b' is neither 5b, 14b, a job nor a checkpoint"});
  write("cut/model.safetensors", std::string("\x08\0\0\0\0\0\0\0{\"a\":", 13));
  expect_end(doctor("cut"), kUnhealthy, {"cut/model.safetensors", "at offset"});
  store("two/model.safetensors", full_);
  store("two/diffusion_pytorch_model.safetensors", plain_[Component::dit]);
  expect_end(doctor("two"), kUnhealthy, {"two", "model.safetensors", "diffusion_pytorch_model.safetensors"});
}

TEST_F(WeightsCommandTest, ADreamZeroCheckpointIsSplitIntoItsNetworks) {
  store("ckpt/model.safetensors", full_);
  expect_end(convert({"ckpt", "--to", "troupe", "--out", "out"}), kOk,
             {"dit: ", "text_encoder: ", "image_encoder: ", "out/dit/model.safetensors  "});
  for (const auto& [component, tensors] : plain_) {
    expect_equal(load(std::string("out/") + component_name(component), component), tensors);
  }
  expect_end(doctor("out"), kOk, {"out/dit\n", "out/text_encoder\n", "out/image_encoder\n", "\nOK\n"});
}
TEST_F(WeightsCommandTest, APickleIsConvertedBitForBit) {
  testing::write_pth(folder_ / "t5.pth", plain_[Component::text_encoder]);
  expect_end(convert({"t5.pth", "--out", "out"}), kOk, {"text_encoder: ", "out/model.safetensors  "});
  expect_equal(load("out", Component::text_encoder), plain_[Component::text_encoder]);
  expect_end(convert({"t5.pth", "--component", "text_encoder", "--dtype", "bf16", "--out", "half"}), kOk, {});
  expect_end(doctor("half"), kOk, {"BF16)"});
}
TEST_F(WeightsCommandTest, AdaptersAreMergedWithTheScaleGiven) {
  auto tensors = plain_[Component::dit];
  const auto a = at::randn({2, 24}), b = at::randn({24, 2});
  tensors[q_ + ".lora_A.default.weight"] = a;
  tensors[q_ + ".lora_B.default.weight"] = b;
  store("lora.safetensors", tensors);
  expect_end(convert({"lora.safetensors", "--merge-lora", "--lora-scale", "0.5", "--out", "out"}), kOk, {"1 adapters"});
  const auto merged = load("out", Component::dit);
  EXPECT_LE(testing::max_difference(merged.at(q_ + ".weight"),
                                    plain_[Component::dit].at(q_ + ".weight") + 0.5 * at::mm(b, a)),
            1e-5);
}
TEST_F(WeightsCommandTest, CheckListsAndWritesNothing) {
  store("ckpt/model.safetensors", full_);
  expect_refused(convert({"ckpt", "--check", "--out", "out"}), kOk, {"dit: ", "OK"});
  auto tensors = plain_[Component::dit];
  tensors.erase("head.modulation");
  store("part.safetensors", tensors);
  expect_refused(convert({"part.safetensors", "--check"}), kDataProblem, {"missing head.modulation", "PROBLEMS FOUND"});
  expect_refused(convert({"part.safetensors", "--out", "out"}), kUsage, {"1 tensors are missing (--check lists them)"});
  expect_refused(convert({"ckpt", "--check", "--model", "5b"}), kDataProblem, {"misshapen", "PROBLEMS FOUND"});
}
TEST_F(WeightsCommandTest, MistakesOfTheCommandLineAreNamed) {
  store("dit.safetensors", plain_[Component::dit]);
  expect_refused(convert({"dit.safetensors"}), kUsage, {"--out is needed, or --check"});
  expect_refused(convert({"dit.safetensors", "--component", "text_encoder", "--out", "out"}), kUsage,
                 {"text_encoder", "there is no token_embedding.weight"});
  expect_refused(convert({"dit.safetensors", "--component", "teapot", "--out", "out"}), kUsage, {"teapot"});
  expect_refused(convert({"dit.safetensors", "--to", "teapot", "--out", "out"}), kUsage, {"teapot"});
  expect_refused(convert({"dit.safetensors", "--model", "absent.yaml", "--out", "out"}), kUsage, {"absent.yaml"});
  expect_refused(convert({"absent.pth", "--out", "out"}), kUsage, {"absent.pth"});
  expect_refused(convert({"absent", "--out", "out"}), kUsage, {"absent does not exist"});
}
TEST_F(WeightsCommandTest, APickleThatCallsSomethingIsRefused) {
  write("evil.pth", testing::pth_bytes(testing::PickleBytes()
                                           .global("os", "system")
                                           .raw("(X\x04")
                                           .raw(std::string(3, '\0'))
                                           .raw("true"
                                                "tR.")
                                           .bytes(),
                                       {}));
  expect_refused(convert({"evil.pth", "--out", "out"}), kDataProblem,
                 {"evil.pth: global os.system is refused", "at offset "});
  expect_end(doctor("evil.pth"), kUnhealthy, {"evil.pth: global os.system is refused"});
  write("old.pth", "\x80\x02\x8a\x0a and so on");
  expect_refused(convert({"old.pth", "--out", "out"}), kDataProblem, {"before version 1.6", "weights_only=True"});
}
TEST_F(WeightsCommandTest, AKilledConversionIsFinishedByTheSameCommand) {
  store("dit.safetensors", plain_[Component::dit]);
  const std::vector<std::string> words = {"dit.safetensors", "--shard-size", "20000", "--out"};
  const auto into = [&](const std::string& folder, std::map<std::string, std::string> env = {}) {
    auto all = words;
    all.push_back(folder);
    return convert(all, std::move(env));
  };
  EXPECT_EQ(into("out", {{"TROUPE_FAULT", "convert.tensor:kill:1:40"}}).signal, SIGKILL);
  expect_end(doctor("out"), kUnhealthy, {"out holds none of"});
  expect_end(into("out"), kOk, {"(was finished already)"});
  expect_end(into("whole"), kOk, {});
  EXPECT_EQ(files_below(folder_ / "out"), files_below(folder_ / "whole"));
  expect_equal(load("out", Component::dit), plain_[Component::dit]);
  expect_end(convert({"dit.safetensors", "--dtype", "bf16", "--out", "out"}), kUsage,
             {"holds another conversion", "choose another --out"});
}

}  // namespace
}  // namespace troupe::app

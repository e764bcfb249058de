// A DreamZero folder as a stranger would have made it, tensor by tensor.
#include "workers/inference/policy/load_policy.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "model/wan/weights/load_features.h"
#include "tests/workers/inference/policy/gear_folder.h"
#include "tests/workers/inference/policy/tiny_policy.h"
#include "workers/checkpoint/weight_shards.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

class LoadPolicyTest : public ::testing::Test {
 protected:
  /// MKL adds in an order that depends on where a buffer lies, and weights of a mapped file lie elsewhere than tensors:
  /// equal bits only with this, which MKL reads once a process (ctest starts one for each case).
  static void SetUpTestSuite() { ::setenv("MKL_CBWR", "AUTO,STRICT", 1); }
  void SetUp() override {
    spec_ = tiny_spec();
    const ParamView dit = random_dit(spec_.model, 3);
    for (const auto& [name, tensor] : dit.tensors()) tensors_[dreamzero_name(Component::dit, name)] = tensor;
    for (const Component component : {Component::text_encoder, Component::image_encoder}) {
      const auto params = load_frozen_component(spec_.model, component, at::kFloat, 5);
      for (const auto& [name, tensor] : params->view().tensors()) tensors_[dreamzero_name(component, name)] = tensor;
    }
    folder_.write_spec(spec_);
  }
  void write_weights(bool bf16 = false, std::int64_t shard_bytes = std::int64_t{1} << 30) {
    std::vector<ShardTensor> list;
    std::vector<at::Tensor> values;
    for (const auto& [name, tensor] : tensors_) {
      list.push_back({name, tensor.sizes().vec()});
      values.push_back(tensor.to(at::kFloat).contiguous());
    }
    write_weight_shards(
        folder_.root(), list,
        [&](std::size_t i, std::int64_t begin, std::int64_t count, float* out) -> Result<void> {
          std::copy_n(values[i].const_data_ptr<float>() + begin, count, out);
          return {};
        },
        bf16, shard_bytes)
        .value();
  }
  std::vector<float> actions(Policy& policy) {
    const Observation o = tiny_observation("e", 0, 1);
    auto results = policy.act(std::span(&o, 1));
    return results[0]->values;
  }
  std::string refused(const PolicyOptions& options = {}) {
    const auto policy = load_policy(folder_.root(), options);
    return policy ? "no error" : policy.error().message();
  }
  std::unique_ptr<Policy> load(const PolicyOptions& options = {.steps = 3}) {
    return load_policy(folder_.root(), options).value();
  }

  PolicySpec spec_;
  std::map<std::string, at::Tensor> tensors_;
  GearFolder folder_;
};

TEST_F(LoadPolicyTest, AFolderActsLikeItsWeights) {
  write_weights(false, 100'000);
  ASSERT_TRUE(std::filesystem::exists(folder_.root() + "/model.safetensors.index.json")) << "several shards";
  EXPECT_EQ(actions(*load()), actions(*tiny_policy()));
}

TEST_F(LoadPolicyTest, Bf16IsCloseToFp32) {
  write_weights();
  const std::vector<float> exact = actions(*load()), rounded = actions(*load({.steps = 3, .dtype = "bf16"}));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(exact[i] - rounded[i], 2);
    size += std::pow(exact[i], 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(std::sqrt(difference / size), 0.05);
}

TEST_F(LoadPolicyTest, AdaptersAreFoldedIn) {
  const std::string module = "blocks.1.ffn.0";
  const std::string plain = dreamzero_name(Component::dit, module + ".weight");
  const at::Tensor weight = tensors_.at(plain);
  const at::Tensor a = at::full({2, weight.size(1)}, 0.3F), b = at::full({weight.size(0), 2}, 0.5F);
  spec_.model.train_architecture = "lora";
  spec_.model.lora.rank = 2;
  spec_.model.lora.alpha = 3;
  folder_.write_spec(spec_);
  tensors_.erase(plain);
  const std::string wrapped = "action_head.model.base_model.model." + module;
  tensors_[wrapped + ".base_layer.weight"] = weight;
  tensors_[wrapped + ".lora_A.default.weight"] = a;
  tensors_[wrapped + ".lora_B.default.weight"] = b;
  write_weights();
  const std::vector<float> adapted = actions(*load());

  spec_.model.train_architecture = "full";
  for (const char* name : {".base_layer.weight", ".lora_A.default.weight", ".lora_B.default.weight"})
    tensors_.erase(wrapped + name);
  tensors_[plain] = weight + at::matmul(b, a) * 1.5;
  std::filesystem::remove(folder_.root() + "/model.safetensors");
  folder_.write_spec(spec_);
  write_weights();
  const std::vector<float> folded = actions(*load()), base = actions(*tiny_policy());
  float most = 0, moved = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    most = std::max(most, std::abs(adapted[i] - folded[i]));
    moved = std::max(moved, std::abs(adapted[i] - base[i]));
  }
  EXPECT_LT(most, 1e-5F);
  EXPECT_GT(moved, 1e-3F);
}

TEST_F(LoadPolicyTest, MissingTensorsAreListed) {
  tensors_.erase(dreamzero_name(Component::dit, "head.modulation"));
  tensors_.erase(dreamzero_name(Component::dit, "blocks.0.modulation"));
  write_weights();
  EXPECT_THAT(refused(), HasSubstr("2 of "));
  EXPECT_THAT(refused(), HasSubstr("blocks.0.modulation, head.modulation"));
}

TEST_F(LoadPolicyTest, AFolderWithoutEncodersSaysSo) {
  std::erase_if(tensors_, [](const auto& t) { return t.first.starts_with("action_head.text_encoder."); });
  write_weights();
  EXPECT_THAT(refused(), HasSubstr("A policy needs all networks in the folder"));
}

TEST_F(LoadPolicyTest, AWrongShapeNamesTheTensor) {
  const std::string name = dreamzero_name(Component::dit, "blocks.1.ffn.2.bias");
  tensors_[name] = at::zeros({7});
  write_weights();
  EXPECT_THAT(refused(), HasSubstr("blocks.1.ffn.2.bias"));
}

TEST_F(LoadPolicyTest, TensorsOfNoNetworkAreLeftOut) {
  tensors_[dreamzero_name(Component::dit, "extra.weight")] = at::zeros({3});
  write_weights();
  EXPECT_EQ(actions(*load()), actions(*tiny_policy()));
}

TEST_F(LoadPolicyTest, SizesThatTheConfigurationLeavesOpenComeFromTheTensors) {
  write_weights();
  auto config = nlohmann::json::parse(gear_config_json(to_gear_config(spec_)));
  auto& dit = config["action_head_cfg"]["config"]["diffusion_model_cfg"];
  for (const char* key : {"hidden_size", "action_dim", "max_state_dim"}) dit.erase(key);
  folder_.write("config.json", config.dump());
  EXPECT_EQ(actions(*load()), actions(*tiny_policy()));
}

TEST_F(LoadPolicyTest, ADtypeThatIsNoneAndAFolderThatIsNoneAreRefused) {
  write_weights();
  EXPECT_THAT(refused({.dtype = "int4"}), HasSubstr("'int4'; wanted fp32 or bf16"));
  EXPECT_THAT(refused({.weights = WeightSet::ema}), HasSubstr("which holds one set of weights; leave out --weights"));
  EXPECT_EQ(load_policy("/nowhere", {}).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::workers

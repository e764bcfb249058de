// Wan and DreamZero checkpoints as the start of a job, whole or under adapters.
#include "model/wan/weights/weights_state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "model/wan/frozen_params.h"
#include "model/wan/lora.h"
#include "model/wan/weights/checkpoint_names.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"
#include "tests/support/weight_files.h"

namespace troupe::model {
namespace {

using ::testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

constexpr std::uint64_t kStateSeed = 12;
const std::string kQ = "blocks.0.self_attn.q";

class WeightsStateTest : public ::testing::Test {
 protected:
  static ModelConfig config(const std::string& mode, const std::string& architecture = "full", bool i2v = false) {
    auto c = tiny_config({.name = "tiny", .image_to_video = i2v});
    c.init.mode = mode;
    c.train_architecture = architecture;
    c.lora.rank = 2;
    c.lora.alpha = 1;
    return c;
  }
  static Tensors all(const ModelConfig& c) {
    return testing::numbered_tensors(component_params(c, Component::dit), at::kFloat);
  }
  /// What a Wan checkpoint has of it.
  static Tensors wan(const ModelConfig& c) {
    Tensors out;
    for (const auto& [name, tensor] : all(c)) {
      if (!is_new_in_dreamzero(c, name)) out[name] = tensor;
    }
    return out;
  }
  Result<std::unique_ptr<WeightsState>> open(const Tensors& tensors, const ModelConfig& c) {
    const auto path = folder_ / "model.safetensors";
    write_safetensors(path, tensors);
    auto source = WeightSource::open(path);
    return WeightsState::open(*source, c, state_units(training_units(c)), kStateSeed);
  }
  std::string error_of(const Tensors& tensors, const ModelConfig& c) { return open(tensors, c).error().message(); }
  /// Every parameter as the state gives it, each unit read in pieces of 100 elements.
  static Tensors read_all(const WeightsState& state, const ModelConfig& c) {
    Tensors out;
    const auto units = state_units(training_units(c));
    for (std::size_t u = 0; u < units.size(); ++u) {
      const auto layout = make_flat_layout(units[u].params);
      auto flat = at::full({layout.numel}, -7.0);
      for (std::int64_t at = 0; at < layout.numel; at += 100) {
        state
            .read(u, StateKind::master, at, std::min<std::int64_t>(100, layout.numel - at), flat.data_ptr<float>() + at)
            .value();
      }
      const auto views = views_of(layout, flat, false);
      for (const auto& [name, view] : views.tensors()) out[name] = view.clone();
    }
    return out;
  }

  ScratchFolder folder_;
};

TEST_F(WeightsStateTest, AWanCheckpointKeepsItsBitsAndTheRestStartsFromTheSeed) {
  for (const bool i2v : {false, true}) {
    const auto c = config("components", "full", i2v);
    const auto stored = wan(c);
    EXPECT_EQ(stored.count("img_emb.proj.1.weight"), i2v ? 1U : 0U);
    const auto state = open(stored, c);
    EXPECT_EQ((*state)->updates(), 0);
    const auto got = read_all(**state, c);
    for (const auto& spec : component_params(c, Component::dit)) {
      const auto want = stored.contains(spec.name) ? stored.at(spec.name) : initial_tensor(spec, kStateSeed);
      EXPECT_TRUE(at::equal(got.at(spec.name), want)) << spec.name;
    }
  }
}

TEST_F(WeightsStateTest, MomentsAreZero) {
  const auto c = config("components");
  const auto state = open(wan(c), c);
  std::vector<float> moments(50, 3.0F);
  ASSERT_TRUE((*state)->read(0, StateKind::v, 10, 50, moments.data()));
  EXPECT_EQ(moments, std::vector<float>(50, 0.0F));
}

TEST_F(WeightsStateTest, OtherFloatsAreWidened) {
  const auto c = config("dreamzero");
  auto stored = all(c);
  for (auto& [name, tensor] : stored) tensor = tensor.to(at::kBFloat16);
  stored[kQ + ".weight"] = stored[kQ + ".weight"].to(at::kDouble);
  stored[kQ + ".bias"] = stored[kQ + ".bias"].to(at::kHalf);
  const auto state = open(stored, c);
  for (const auto& [name, tensor] : read_all(**state, c)) {
    EXPECT_TRUE(at::equal(tensor, stored.at(name).to(at::kFloat))) << name;
  }
}

TEST_F(WeightsStateTest, MissingTensorsAreListedUnlessWanLacksThemToo) {
  const auto c = config("components");
  auto stored = wan(c);
  stored.erase(kQ + ".weight");
  EXPECT_THAT(error_of(stored, c), HasSubstr(kQ + ".weight"));
  // one of the new tensors alone is a damaged file, not a Wan checkpoint
  stored = wan(c);
  stored["action_encoder.W1.b"] = all(c).at("action_encoder.W1.b");
  EXPECT_THAT(error_of(stored, c), HasSubstr("action_encoder.W1.b"));
  EXPECT_TRUE(open(all(c), c)) << "a complete transformer is as good";
  EXPECT_THAT(error_of(wan(c), config("dreamzero")), HasSubstr("img_emb.proj.0.weight"));
}

TEST_F(WeightsStateTest, UnexpectedAndMisshapenTensorsAreNamed) {
  const auto c = config("components");
  auto stored = wan(c);
  stored["blocks.2.modulation"] = at::zeros({1, 6, 24});
  EXPECT_THAT(error_of(stored, c), HasSubstr("blocks.2.modulation"));
  stored = wan(c);
  stored[kQ + ".weight"] = at::zeros({24, 23});
  EXPECT_THAT(error_of(stored, c), HasSubstr("[24, 23]"));
  stored = wan(c);
  stored[kQ + ".bias"] = at::zeros({24}, at::kLong);
  const auto state = open(stored, c);
  std::vector<float> out(200'000);
  const auto layout = make_flat_layout(training_units(c)[1].params);
  EXPECT_EQ((*state)->read(1, StateKind::master, 0, layout.numel, out.data()).error().code(), Errc::invalid_argument);
}

TEST_F(WeightsStateTest, AdaptersStartFreshOnAWanCheckpoint) {
  const auto c = config("components", "lora");
  const auto state = open(wan(c), c);
  const auto got = read_all(**state, c);
  const auto& a = got.at(kQ + std::string(kLoraA));
  EXPECT_LE(a.abs().max().item<double>(), 1 / std::sqrt(24.0));
  EXPECT_GT(a.abs().max().item<double>(), 0.0);
  EXPECT_EQ(got.at(kQ + std::string(kLoraB)).abs().max().item<double>(), 0.0);
  EXPECT_TRUE(at::equal(got.at(kQ + ".weight"), wan(c).at(kQ + ".weight")));
}

class StoredAdaptersTest : public WeightsStateTest {
 protected:
  StoredAdaptersTest() : stored_(all(config("dreamzero"))) {
    a_ = at::rand({2, 24}), b_ = at::rand({24, 2});
    Tensors prefixed;
    for (const auto& [name, tensor] : stored_) prefixed["action_head.model.base_model.model." + name] = tensor;
    prefixed["action_head.model.base_model.model." + kQ + ".lora_A.default.weight"] = a_;
    prefixed["action_head.model.base_model.model." + kQ + ".lora_B.default.weight"] = b_;
    prefixed_ = prefixed;
  }
  Tensors stored_, prefixed_;
  at::Tensor a_, b_;
};

TEST_F(StoredAdaptersTest, TrainingWholeFoldsThemIn) {
  const auto c = config("dreamzero", "full");
  const auto state = open(prefixed_, c);
  const auto got = read_all(**state, c);
  EXPECT_LE(testing::max_difference(got.at(kQ + ".weight"), stored_.at(kQ + ".weight") + 0.5 * b_.matmul(a_)), 1e-6);
  EXPECT_TRUE(at::equal(got.at("blocks.1.self_attn.q.weight"), stored_.at("blocks.1.self_attn.q.weight")));
}

TEST_F(StoredAdaptersTest, TrainingAdaptersGoesOnWithThem) {
  const auto c = config("dreamzero", "lora");
  const auto state = open(prefixed_, c);
  const auto got = read_all(**state, c);
  EXPECT_TRUE(at::equal(got.at(kQ + std::string(kLoraA)), a_));
  EXPECT_TRUE(at::equal(got.at(kQ + std::string(kLoraB)), b_));
  EXPECT_TRUE(at::equal(got.at(kQ + ".weight"), stored_.at(kQ + ".weight")));
  auto other_rank = c;
  other_rank.lora.rank = 3;
  EXPECT_THAT(error_of(prefixed_, other_rank), HasSubstr("[2, 24]"));
}

}  // namespace
}  // namespace troupe::model

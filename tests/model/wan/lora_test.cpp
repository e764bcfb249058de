// Low-rank adapters: which linears get them, what they start as, what they compute, and merging.
#include "model/wan/lora.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "model/shard/engine.h"
#include "model/wan/dit.h"
#include "model/wan/dit_units.h"
#include "model/wan/lora_merge.h"
#include "tests/model/wan/golden_constructor.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/golden_folder.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

const testing::TinyShape kShape{.name = "two_blocks"};

ModelConfig lora_config(double alpha = 4) {
  auto config = testing::tiny_config(kShape);
  config.train_architecture = "lora";
  config.lora.alpha = alpha;
  return config;
}

/// Random values for everything; adapters too unless `zero_b`.
NamedTensors parameters_of(const ModelConfig& config, bool zero_b) {
  auto units = state_units(training_units(config));
  auto parameters = testing::random_parameters(units, 4, at::kFloat);
  for (auto& [name, tensor] : parameters) {
    if (zero_b && name.ends_with(kLoraB)) tensor.zero_();
  }
  return parameters;
}

std::int64_t adapter_parameters(const std::vector<UnitSpec>& units) {
  std::int64_t sum = 0;
  for (const auto& unit : units) {
    for (const auto& spec : unit.replicated) {
      if (spec.name.ends_with(kLoraA) || spec.name.ends_with(kLoraB)) sum += spec.shape[0] * spec.shape[1];
    }
  }
  return sum;
}

ModelConfig preset(bool big) {
  auto config = big ? wan_14b() : ModelConfig();
  config.train_architecture = "lora";
  return config;
}

TEST(LoraTest, ThePublishedParameterCounts) {
  EXPECT_EQ(adapter_parameters(training_units(preset(false))), 10'076'160);
  EXPECT_EQ(adapter_parameters(training_units(preset(true))), 19'169'280);
  // trainable in all: 44.9 M and 108.6 M
  EXPECT_EQ(count_parameters(state_units(training_units(preset(false))).back()), 10'076'160 + 34'813'984);
  EXPECT_EQ(count_parameters(state_units(training_units(preset(true))).back()), 19'169'280 + 89'413'664);
}

class GoldenLoraTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenLoraTest, NamesShapesAndCountsAreTheReferences) {
  const auto& json = GetParam().json;
  if (!json.contains("lora")) GTEST_SKIP() << "the case has no adapters";
  auto config = config_of_constructor(json.at("constructor"));
  config.train_architecture = "lora";
  const auto& lora = json.at("lora");
  const auto units = training_units(config);
  EXPECT_EQ(adapter_parameters(units), lora.at("parameter_count").get<std::int64_t>());
  std::map<std::string, std::vector<std::int64_t>> first, want;
  std::int64_t count = 0;
  for (const auto& unit : units) {
    for (const auto& spec : unit.replicated) {
      if (!spec.name.ends_with(kLoraA) && !spec.name.ends_with(kLoraB)) continue;
      ++count;
      if (unit.name == "blocks.0") first["base_model.model." + spec.name] = spec.shape;
    }
  }
  EXPECT_EQ(count, lora.value("tensor_count", count));
  if (!lora.contains("block0")) return;
  for (const auto& [name, shape] : lora.at("block0").items()) want[name] = shape.get<std::vector<std::int64_t>>();
  EXPECT_EQ(first, want);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLoraTest, ::testing::ValuesIn(golden_cases("dit", "keys")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLoraTest);

TEST(LoraTest, EverythingElseIsFrozenAndNothingIsLostOrDoubled) {
  const auto config = lora_config();
  auto plain = config;
  plain.train_architecture = "full";
  const auto units = training_units(config), all = training_units(plain);
  ASSERT_EQ(units.size(), all.size());
  std::set<std::string> names;
  for (std::size_t u = 0; u < units.size(); ++u) {
    EXPECT_FALSE(units[u].trainable);
    EXPECT_TRUE(all[u].trainable);
    for (const auto* list : {&units[u].params, &units[u].replicated}) {
      for (const auto& spec : *list) EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    }
    for (const auto& spec : units[u].params) {
      EXPECT_FALSE(spec.name.starts_with("action_") || spec.name.starts_with("state_")) << spec.name;
    }
    for (const auto& spec : all[u].params) EXPECT_TRUE(names.count(spec.name)) << spec.name;
  }
  EXPECT_EQ(names.count("blocks.0.cross_attn.k" + std::string(kLoraA)), 1U);
  EXPECT_EQ(names.count("blocks.0.cross_attn.k_img" + std::string(kLoraA)), 0U);
  EXPECT_EQ(names.count("text_embedding.0" + std::string(kLoraA)), 0U);
}

TEST(LoraTest, TargetsMatchWholeNamesBehindADot) {
  EXPECT_TRUE(matches_target("blocks.3.self_attn.q", "q"));
  EXPECT_TRUE(matches_target("blocks.3.self_attn.q", "self_attn.q"));
  EXPECT_TRUE(matches_target("q", "q"));
  EXPECT_FALSE(matches_target("blocks.3.norm_q", "q"));
  EXPECT_FALSE(matches_target("blocks.3.cross_attn.k_img", "k"));
  auto config = lora_config();
  config.lora.targets = {"q", "qkv"};
  EXPECT_THROW(training_units(config), c10::Error);
}

TEST(LoraTest, AIsUniformWithinTheInverseRootOfItsInputsAndBIsZero) {
  for (const auto& unit : training_units(lora_config())) {
    for (const auto& spec : unit.replicated) {
      const auto value = initial_tensor(spec, 9);
      if (spec.name.ends_with(kLoraB)) {
        EXPECT_EQ(value.abs().max().item<double>(), 0.0);
      }
      if (!spec.name.ends_with(kLoraA)) continue;
      const double bound = 1 / std::sqrt(static_cast<double>(spec.shape[1]));
      EXPECT_LE(value.abs().max().item<double>(), bound);
      EXPECT_GT(value.abs().max().item<double>(), 0.9 * bound);
    }
  }
}

TEST(LoraTest, ZeroBIsTheIdentityBitForBit) {
  const auto config = lora_config();
  auto plain = config;
  plain.train_architecture = "full";
  const auto parameters = parameters_of(config, /*zero_b=*/true);
  const auto batch = testing::tiny_batch(kShape, 2, at::kFloat);
  const auto adapted = testing::run_network(DitNetwork(config, 2), parameters, batch);
  const auto base = testing::run_network(DitNetwork(plain, 2), parameters, batch);
  for (const auto& [name, value] : base.predictions)
    EXPECT_TRUE(at::equal(value, adapted.predictions.at(name))) << name;
  EXPECT_EQ(base.loss.item<double>(), adapted.loss.item<double>());
}

TEST(LoraTest, MergedWeightsComputeWhatAdaptersCompute) {
  const auto config = lora_config(/*alpha=*/6);
  auto plain = config;
  plain.train_architecture = "full";
  const auto parameters = parameters_of(config, /*zero_b=*/false);
  auto merged = parameters;
  for (const auto& [name, a] : parameters) {
    if (!name.ends_with(kLoraA)) continue;
    const auto module = name.substr(0, name.size() - kLoraA.size());
    auto& weight = merged.at(module + ".weight");
    weight = weight + lora_scale(config.lora) * parameters.at(module + std::string(kLoraB)).matmul(a);
  }
  const auto batch = testing::tiny_batch(kShape, 2, at::kFloat);
  const auto adapted = testing::run_network(DitNetwork(config, 2), parameters, batch);
  const auto base = testing::run_network(DitNetwork(plain, 2), parameters, batch);
  const auto folded = testing::run_network(DitNetwork(plain, 2), merged, batch);
  for (const auto& [name, value] : adapted.predictions) {
    EXPECT_LE(testing::relative_l2(folded.predictions.at(name), value), 1e-5) << name;
    EXPECT_GT(testing::relative_l2(base.predictions.at(name), value), 1e-2) << name;
  }
}

TEST(LoraTest, APartOfAMatrixMergesToTheSameBits) {
  const auto weight = at::rand({7, 5}), a = at::rand({3, 5}), b = at::rand({7, 3});
  const LowRankUpdate update{
      3, 5, {a.data_ptr<float>(), a.data_ptr<float>() + 15}, {b.data_ptr<float>(), b.data_ptr<float>() + 21}, 0.75};
  const auto whole = weight.clone();
  add_low_rank(update, 0, {whole.data_ptr<float>(), 35});
  EXPECT_LE(testing::max_difference(whole, weight + 0.75 * b.matmul(a)), 1e-6);
  auto part = weight.flatten().slice(0, 4, 23).clone();
  add_low_rank(update, 4, {part.data_ptr<float>(), 19});
  EXPECT_TRUE(at::equal(part, whole.flatten().slice(0, 4, 23)));
}

TEST(LoraTest, TheEngineTrainsAdaptersAndLeavesTheBaseAlone) {
  const auto network = std::make_shared<DitNetwork>(lora_config(), 2);
  const auto group = make_thread_group(1, std::chrono::seconds(20));
  const auto collective = join_thread_group(group, 0);
  Engine engine(network, {.adamw = {.weight_decay = 0}});
  engine.attach(*collective).value();
  engine.initialise(1);
  const auto base = [&engine] {
    std::vector<at::Tensor> shards;
    for (std::size_t u = 0; u + 1 < engine.units().size(); ++u) shards.push_back(engine.frozen_shard(u));
    return at::cat(shards);
  };
  const at::Tensor base_before = base();
  std::vector<std::byte> before(engine.snapshot_bytes()), after(engine.snapshot_bytes());
  engine.snapshot(before);
  const auto batch = testing::tiny_batch(kShape, 2, at::kFloat);
  std::vector<double> losses;
  for (int step = 0; step < 15; ++step) {
    const auto result = engine.accumulate(batch, 1.0, true);
    const auto vote = engine.vote({}, {}).value();
    ASSERT_TRUE(vote.finite);
    engine.commit(3e-3, vote);
    losses.push_back(result->loss);
  }
  engine.snapshot(after);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_TRUE(at::equal(base(), base_before));
  EXPECT_FALSE(before == after);
}

}  // namespace
}  // namespace troupe::model

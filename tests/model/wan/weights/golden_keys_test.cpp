// Key lists, shapes and parameter counts of the real configurations against what the reference's modules hold.
#include <gtest/gtest.h>

#include <set>

#include "model/wan/weights/checkpoint_names.h"
#include "model/wan/weights/model_summary.h"
#include "tests/support/golden_folder.h"

namespace troupe {
namespace {

using nlohmann::json;
using testing::golden_cases;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

ModelConfig dit_config(const json& constructor) {
  ModelConfig config;
  auto& dit = config.dit;
  dit.type = constructor.value("model_type", dit.type);
  dit.dim = constructor.value("dim", dit.dim);
  dit.in_dim = constructor.value("in_dim", dit.in_dim);
  dit.out_dim = constructor.value("out_dim", dit.out_dim);
  dit.ffn_dim = constructor.value("ffn_dim", dit.ffn_dim);
  dit.freq_dim = constructor.value("freq_dim", dit.freq_dim);
  dit.num_heads = constructor.value("num_heads", dit.num_heads);
  dit.num_layers = constructor.value("num_layers", dit.num_layers);
  dit.encoder_hidden = constructor.value("hidden_size", dit.encoder_hidden);
  dit.action_dim = constructor.value("action_dim", dit.action_dim);
  dit.max_state_dim = constructor.value("max_state_dim", dit.max_state_dim);
  config.text_encoder.dim = constructor.value("text_dim", config.text_encoder.dim);
  config.image_encoder.dim = constructor.value("clip_dim", config.image_encoder.dim);
  return config;
}

Shapes shapes_of(const std::vector<ParamSpec>& specs) {
  Shapes shapes;
  for (const auto& spec : specs) EXPECT_TRUE(shapes.emplace(spec.name, spec.shape).second) << spec.name << " twice";
  return shapes;
}

std::int64_t numel(const Shapes& shapes) {
  std::int64_t total = 0;
  for (const auto& [name, shape] : shapes) {
    std::int64_t count = 1;
    for (const auto size : shape) count *= size;
    total += count;
  }
  return total;
}

void expect_same_keys(const Shapes& got, const Shapes& want) {
  for (const auto& [name, shape] : want) {
    const auto found = got.find(name);
    if (found == got.end()) {
      ADD_FAILURE() << name << " is missing";
    } else {
      EXPECT_EQ(found->second, shape) << name;
    }
  }
  for (const auto& [name, shape] : got) EXPECT_EQ(want.count(name), 1u) << name << " is too much";
}

TEST(GoldenKeysTest, NamesAndShapesOfTheTransformerAreTheReferences) {
  const auto cases = golden_cases("dit", "keys");
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto shapes = shapes_of(component_params(dit_config(c.json.at("constructor")), Component::dit));
    expect_same_keys(shapes, c.json.at("tensors").get<Shapes>());
    if (c.json.contains("parameter_count")) {
      EXPECT_EQ(numel(shapes), c.json["parameter_count"].get<std::int64_t>());
    }
  }
  if (cases.empty()) GTEST_SKIP() << "no case of kind keys";
}
TEST(GoldenKeysTest, WhatAWanCheckpointLacksIsKnownByName) {
  int checked = 0;
  for (const auto& c : golden_cases("dit", "keys")) {
    if (!c.json.contains("not_in_wan_checkpoint") || !c.json.contains("parameters_in_wan_checkpoint")) continue;
    SCOPED_TRACE(c.name);
    const auto config = dit_config(c.json.at("constructor"));
    Shapes in_wan;
    std::set<std::string> fresh;
    for (const auto& [name, shape] : shapes_of(component_params(config, Component::dit))) {
      if (is_new_in_dreamzero(config, name)) {
        fresh.insert(name);
      } else {
        in_wan[name] = shape;
      }
    }
    for (const auto& name : c.json["not_in_wan_checkpoint"].get<std::vector<std::string>>()) {
      // the list ends in one line that stands for a family of names
      if (name.find(' ') == std::string::npos) {
        EXPECT_EQ(fresh.count(name), 1u) << name;
      }
    }
    EXPECT_EQ(numel(in_wan), c.json["parameters_in_wan_checkpoint"].get<std::int64_t>());
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "no case lists what a Wan checkpoint lacks";
}
TEST(GoldenKeysTest, AdapterNamesOfTheReferenceAreRead) {
  int checked = 0;
  for (const auto& c : golden_cases("dit", "keys")) {
    if (!c.json.contains("lora") || !c.json["lora"].contains("block0")) continue;
    const auto shapes = shapes_of(component_params(dit_config(c.json.at("constructor")), Component::dit));
    for (const auto& [stored, shape] : c.json["lora"]["block0"].items()) {
      const auto name = read_stored_name(stored, Component::dit);
      ASSERT_TRUE(name) << stored;
      const auto linear = name->name.substr(0, name->name.find(".lora_"));
      const auto weight = shapes.find(linear + ".weight");
      ASSERT_NE(weight, shapes.end()) << stored;
      const bool is_a = name->name.ends_with("lora_A.weight");
      EXPECT_EQ(shape.at(is_a ? 1 : 0).get<std::int64_t>(), weight->second.at(is_a ? 1 : 0)) << stored;
      EXPECT_TRUE(stored.find(dreamzero_name(Component::dit, name->name).substr(18)) != std::string::npos) << stored;
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no case lists adapters";
}
TEST(GoldenKeysTest, CountsByPartAreTheReferences) {
  int checked = 0;
  for (const auto& c : golden_cases("dit", "keys")) {
    if (!c.json.contains("parameter_count_by_component")) continue;
    SCOPED_TRACE(c.name);
    const auto summary = summarise_model(dit_config(c.json.at("constructor")));
    for (const auto& [part, count] : c.json["parameter_count_by_component"].items()) {
      const auto found = summary.dit_parts.find(part);
      if (found == summary.dit_parts.end()) {
        ADD_FAILURE() << "part " << part << " is not counted";
      } else {
        EXPECT_EQ(found->second, count.get<std::int64_t>()) << part;
      }
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no case counts parameters by part";
}

/// The counts that the recorded facts of an encoder state, by their keys there.
std::map<std::string, std::int64_t> encoder_counts(Component component, const ModelSummary& summary) {
  if (component == Component::text_encoder) return {{"numel", summary.text_encoder}};
  if (component == Component::image_encoder) {
    return {{"visual_numel", summary.image_encoder}, {"used_numel", summary.image_encoder_used}};
  }
  return {{"numel", summary.vae}, {"encoder_numel", summary.vae_encoder}, {"decoder_numel", summary.vae_decoder}};
}

struct EncoderKeys {
  Component component;
  const char* codec;
};

TEST(GoldenKeysTest, NamesAndShapesOfTheEncodersAreTheReferences) {
  const std::map<std::string, EncoderKeys> known = {{"umt5_xxl", {Component::text_encoder, "dct"}},
                                                    {"clip_vit_h_14", {Component::image_encoder, "dct"}},
                                                    {"vae21", {Component::vae, "wan21"}},
                                                    {"vae22", {Component::vae, "wan22"}}};
  int checked = 0;
  for (const auto& c : golden_cases("encoders", "state_dict_keys")) {
    for (const auto& [name, facts] : c.json.at("components").items()) {
      SCOPED_TRACE(c.name + " " + name);
      const auto found = known.find(name);
      if (found == known.end()) {
        ADD_FAILURE() << name << " is not a component that is known";
        continue;
      }
      const auto shapes = shapes_of(component_params(with_wan_codec({}, found->second.codec), found->second.component));
      expect_same_keys(shapes, facts.at("shapes").get<Shapes>());
      if (facts.contains("numel")) {
        EXPECT_EQ(numel(shapes), facts["numel"].get<std::int64_t>());
      }
      if (facts.contains("tensors")) {
        EXPECT_EQ(shapes.size(), facts["tensors"].get<std::size_t>());
      }
      if (facts.contains("prefix")) {
        EXPECT_EQ(dreamzero_name(found->second.component, ""), facts["prefix"].get<std::string>());
      }
      const auto summary = summarise_model(
          with_wan_codec({}, found->second.codec == std::string("dct") ? "wan22" : found->second.codec));
      for (const auto& [key, count] : encoder_counts(found->second.component, summary)) {
        if (facts.contains(key)) {
          EXPECT_EQ(count, facts[key].get<std::int64_t>()) << key;
        }
      }
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no case of kind state_dict_keys";
}

}  // namespace
}  // namespace troupe

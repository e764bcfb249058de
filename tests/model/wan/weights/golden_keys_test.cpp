// Key lists, shapes and parameter counts of the real configurations against what the reference's modules hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/wan/weights/checkpoint_names.h"
#include "model/wan/weights/model_summary.h"
#include "tests/model/wan/golden_constructor.h"
#include "tests/support/golden_folder.h"

namespace troupe::model {
namespace {

using nlohmann::json;
using Shapes = testing::ParamShapes;

/// The cases of kind keys that say what the reference was constructed from.
std::vector<GoldenCase> transformer_cases() {
  auto cases = golden_cases("dit", "keys");
  std::erase_if(cases, [](const GoldenCase& c) { return !c.json.contains("constructor"); });
  return cases;
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

TEST(GoldenKeysTest, EveryTransformerCaseHoldsSomethingToCompare) {
  const auto cases = golden_cases("dit", "keys");
  for (const auto& c : cases) {
    const std::vector<const char*> compared = {"tensors",
                                               "tensor_count",
                                               "parameter_count",
                                               "parameter_count_by_component",
                                               "not_in_wan_checkpoint",
                                               "parameters_in_wan_checkpoint",
                                               "lora"};
    EXPECT_TRUE(c.json.contains("constructor")) << c.name;
    EXPECT_TRUE(std::any_of(compared.begin(), compared.end(), [&](const char* key) { return c.json.contains(key); }))
        << c.name;
  }
  if (cases.empty()) GTEST_SKIP() << "no case of kind keys";
}
TEST(GoldenKeysTest, NamesAndShapesOfTheTransformerAreTheReferences) {
  int checked = 0;
  for (const auto& c : transformer_cases()) {
    SCOPED_TRACE(c.name);
    const auto shapes = shapes_of(component_params(config_of_constructor(c.json["constructor"]), Component::dit));
    if (c.json.contains("tensors")) {
      expect_same_keys(shapes, c.json["tensors"].get<Shapes>());
      ++checked;
    }
    if (c.json.contains("tensor_count")) {
      EXPECT_EQ(shapes.size(), c.json["tensor_count"].get<std::size_t>());
      ++checked;
    }
    if (c.json.contains("parameter_count")) {
      EXPECT_EQ(numel(shapes), c.json["parameter_count"].get<std::int64_t>());
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no case lists or counts the transformer's tensors";
}
TEST(GoldenKeysTest, WhatAWanCheckpointLacksIsKnownByName) {
  int checked = 0;
  for (const auto& c : transformer_cases()) {
    SCOPED_TRACE(c.name);
    const auto config = config_of_constructor(c.json["constructor"]);
    Shapes in_wan;
    std::set<std::string> fresh;
    for (const auto& [name, shape] : shapes_of(component_params(config, Component::dit))) {
      if (is_new_in_dreamzero(config, name)) {
        fresh.insert(name);
      } else {
        in_wan[name] = shape;
      }
    }
    for (const auto& entry : c.json.value("not_in_wan_checkpoint", json::array())) {
      const auto name = entry.get<std::string>();
      // the list ends in one line that stands for a family of names
      if (name.find(' ') != std::string::npos) continue;
      EXPECT_EQ(fresh.count(name), 1u) << name;
      ++checked;
    }
    if (c.json.contains("parameters_in_wan_checkpoint")) {
      EXPECT_EQ(numel(in_wan), c.json["parameters_in_wan_checkpoint"].get<std::int64_t>());
      ++checked;
    }
  }
  if (checked == 0) GTEST_SKIP() << "no case lists what a Wan checkpoint lacks";
}
TEST(GoldenKeysTest, AdapterNamesOfTheReferenceAreRead) {
  int checked = 0;
  for (const auto& c : transformer_cases()) {
    if (!c.json.contains("lora") || !c.json["lora"].contains("block0")) continue;
    const auto shapes = shapes_of(component_params(config_of_constructor(c.json["constructor"]), Component::dit));
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
  for (const auto& c : transformer_cases()) {
    if (!c.json.contains("parameter_count_by_component")) continue;
    SCOPED_TRACE(c.name);
    const auto summary = summarise_model(config_of_constructor(c.json["constructor"]));
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
}  // namespace troupe::model

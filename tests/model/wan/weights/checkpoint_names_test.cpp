#include "model/wan/weights/checkpoint_names.h"

#include <gmock/gmock.h>

#include "model/wan/weights/component_keys.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "component/name", or "none".
std::string read(std::string_view stored, Component component = Component::dit) {
  const auto name = read_stored_name(stored, component);
  return name ? std::string(component_name(name->component)) + "/" + name->name : "none";
}

TEST(CheckpointNamesTest, NamesWithoutPrefixBelongToTheComponentOfTheFile) {
  EXPECT_EQ(read("blocks.0.self_attn.q.weight"), "dit/blocks.0.self_attn.q.weight");
  EXPECT_EQ(read("blocks.0.attn.q.weight", Component::text_encoder), "text_encoder/blocks.0.attn.q.weight");
  EXPECT_EQ(read("encoder.conv1.bias", Component::vae), "vae/encoder.conv1.bias");
}
TEST(CheckpointNamesTest, PrefixesOfAFullCheckpointSayTheComponent) {
  EXPECT_EQ(read("action_head.model.head.modulation", Component::vae), "dit/head.modulation");
  EXPECT_EQ(read("action_head.text_encoder.norm.weight"), "text_encoder/norm.weight");
  EXPECT_EQ(read("action_head.image_encoder.model.log_scale"), "image_encoder/log_scale");
  EXPECT_EQ(read("action_head.vae.model.conv2.bias"), "vae/conv2.bias");
}
TEST(CheckpointNamesTest, PartsOfNoComponentAreNothing) {
  EXPECT_EQ(read("action_head.mask_token"), "none");
  EXPECT_EQ(read("action_head.image_encoder.logit"), "none");
  EXPECT_EQ(read("textual.token_embedding.weight", Component::image_encoder), "none");
  EXPECT_EQ(read("action_head.image_encoder.model.textual.norm.weight"), "none");
  EXPECT_EQ(read("action_head.model."), "none");
  EXPECT_EQ(read(""), "none");
}
TEST(CheckpointNamesTest, PeftFormsAreReadAsPlainNames) {
  const std::string want = "dit/blocks.3.ffn.0.weight";
  EXPECT_EQ(read("action_head.model.base_model.model.blocks.3.ffn.0.base_layer.weight"), want);
  EXPECT_EQ(read("base_model.model.blocks.3.ffn.0.base_layer.weight"), want);
  EXPECT_EQ(read("base_model.model.action_head.model.blocks.3.ffn.0.weight"), want);
  EXPECT_EQ(read("blocks.3.ffn.0.base_layer.weight"), want);
}
TEST(CheckpointNamesTest, AdapterNamesWithAndWithoutDefaultAgree) {
  const std::string want = "dit/blocks.3.self_attn.q.lora_A.weight";
  EXPECT_EQ(read("action_head.model.base_model.model.blocks.3.self_attn.q.lora_A.default.weight"), want);
  EXPECT_EQ(read("blocks.3.self_attn.q.lora_A.weight"), want);
  EXPECT_EQ(read("blocks.3.self_attn.q.lora_B.default.weight"), "dit/blocks.3.self_attn.q.lora_B.weight");
}
TEST(CheckpointNamesTest, FullNamesReadBack) {
  for (const auto component : {Component::dit, Component::text_encoder, Component::image_encoder, Component::vae}) {
    for (const std::string name : {"blocks.0.x.weight", "blocks.0.x.lora_A.weight", "blocks.0.x.lora_B.weight"}) {
      EXPECT_EQ(read(dreamzero_name(component, name)), std::string(component_name(component)) + "/" + name);
    }
  }
  EXPECT_EQ(dreamzero_name(Component::dit, "blocks.0.self_attn.q.lora_A.weight"),
            "action_head.model.base_model.model.blocks.0.self_attn.q.lora_A.default.weight");
  EXPECT_EQ(dreamzero_name(Component::vae, "conv1.bias"), "action_head.vae.model.conv1.bias");
}
TEST(CheckpointNamesTest, ACosineCodecHasNoVaeTensors) {
  auto config = tiny_config({.name = "t"});
  config.codec.type = "dct";
  EXPECT_TRUE(component_params(config, Component::vae).empty());
  EXPECT_FALSE(component_params(config, Component::image_encoder).empty());
}
TEST(CheckpointNamesTest, TheImagePathIsNewOnlyForTi2v) {
  auto config = tiny_config({.name = "t"});
  for (const char* name : {"action_encoder.W1.W", "state_encoder.layer1.b", "action_decoder.layer2.W"}) {
    EXPECT_TRUE(is_new_in_dreamzero(config, name)) << name;
  }
  EXPECT_TRUE(is_new_in_dreamzero(config, "img_emb.proj.1.weight"));
  EXPECT_TRUE(is_new_in_dreamzero(config, "blocks.1.cross_attn.norm_k_img.weight"));
  EXPECT_FALSE(is_new_in_dreamzero(config, "blocks.1.cross_attn.k.weight"));
  config.dit.type = "i2v";
  EXPECT_FALSE(is_new_in_dreamzero(config, "img_emb.proj.1.weight"));
  EXPECT_FALSE(is_new_in_dreamzero(config, "blocks.1.cross_attn.k_img.weight"));
  EXPECT_TRUE(is_new_in_dreamzero(config, "action_encoder.W1.W"));
}
TEST(CheckpointNamesTest, TwoStoredNamesOfOneTensorAreAnError) {
  const auto keys = component_keys({"a.weight", "a.base_layer.weight"}, Component::dit, Component::dit);
  EXPECT_THAT(keys.error().message(), HasSubstr("'a.weight' and 'a.base_layer.weight' are the same parameter"));
  EXPECT_FALSE(component_keys({"a.lora_A.weight", "a.lora_A.default.weight"}, Component::dit, Component::dit));
}
TEST(CheckpointNamesTest, DifferencesNameMissingUnexpectedAndMisshapenTensors) {
  const auto keys =
      component_keys({"a", "b", "extra", "action_head.vae.model.c", "a.lora_A.weight"}, Component::dit, Component::dit);
  const std::vector<ParamSpec> wanted = {{"a", {2}, {}}, {"b", {}, {}}, {"gone", {1}, {}}};
  const auto shapes = [](const std::string& name) -> Result<std::vector<std::int64_t>> {
    return name == "a" ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{1};
  };
  const auto difference = compare_keys(*keys, wanted, shapes);
  EXPECT_THAT(difference->missing, ElementsAre("gone"));
  EXPECT_THAT(difference->unexpected, ElementsAre("extra"));
  EXPECT_THAT(difference->misshapen, ElementsAre("a: shape [3], want [2]"));
}

}  // namespace
}  // namespace troupe::model

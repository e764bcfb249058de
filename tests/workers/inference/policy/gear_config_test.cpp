#include "workers/inference/policy/gear_config.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "configs/job_config.h"
#include "configs/loader.h"

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// config.json of the published shapes, as the reference's trainer writes it: sizes of encoders, action modules and
/// text are the classes' defaults and not named.
json droid_14b() {
  return json::parse(R"({
    "model_type": "vla", "architectures": ["VLA"], "action_horizon": 24, "action_dim": 32,
    "backbone_cfg": {"_target_": "groot.vla.model.dreamzero.backbone.identity.IdentityBackbone"},
    "action_head_cfg": {"_target_": "x.WANPolicyHead", "_convert_": "object", "config": {
      "tiled": false, "lora_rank": 4, "lora_alpha": 4, "num_frames": 33, "num_frame_per_block": 2,
      "lora_target_modules": "q,k,v,o,ffn.0,ffn.2", "train_architecture": "full", "max_state_dim": 64, "hidden_size": 64,
      "num_inference_timesteps": 4, "action_dim": 32, "action_horizon": 24, "repa_layer": 8, "expand_batch": null,
      "decouple_video_action_noise": false, "video_noise_beta_alpha": 3.0,
      "diffusion_model_cfg": {"_target_": "x.CausalWanModel", "diffusion_model_pretrained_path": null, "model_type": "i2v",
        "frame_seqlen": 880, "dim": 5120, "in_dim": 36, "ffn_dim": 13824, "out_dim": 16, "freq_dim": 256, "eps": 1e-6,
        "num_heads": 40, "num_layers": 40, "max_chunk_size": 4, "num_frame_per_block": 2, "num_action_per_block": 24,
        "num_state_per_block": 1},
      "text_encoder_cfg": {"_target_": "x.WanTextEncoder", "text_encoder_pretrained_path": null},
      "image_encoder_cfg": {"_target_": "x.WanImageEncoder"},
      "vae_cfg": {"_target_": "x.WanVideoVAE", "vae_pretrained_path": null}}}})");
}

json droid_5b() {
  json root = droid_14b();
  json& head = root["action_head_cfg"]["config"];
  head["target_video_height"] = 160;
  head["target_video_width"] = 320;
  head["vae_cfg"] = {{"_target_", "x.WanVideoVAE38"}, {"z_dim", 48}, {"dim", 160}};
  head["diffusion_model_cfg"].update({{"model_type", "ti2v"},
                                      {"dim", 3072},
                                      {"in_dim", 48},
                                      {"out_dim", 48},
                                      {"ffn_dim", 14336},
                                      {"num_heads", 24},
                                      {"num_layers", 30},
                                      {"frame_seqlen", 50},
                                      {"concat_first_frame_latent", false}});
  return root;
}

json& head_of(json& root) { return root["action_head_cfg"]["config"]; }
json& dit_of(json& root) { return head_of(root)["diffusion_model_cfg"]; }

GearConfig parsed(const json& root) { return parse_gear_config(root.dump(), "config.json").value(); }

std::string refused(const json& root) {
  const auto config = parse_gear_config(root.dump(), "config.json");
  return config ? "no error" : config.error().message();
}

/// A model as text, to compare all of it.
std::string text_of(const ModelConfig& model) {
  JobConfig job;
  job.model = model;
  return to_yaml(job);
}

TEST(GearConfigTest, TheFourteenBillionShapesAreRead) {
  const GearConfig c = parsed(droid_14b());
  EXPECT_EQ(c.model.dit.type, "i2v");
  EXPECT_EQ(c.model.dit.dim, 5120);
  EXPECT_EQ(c.model.dit.num_layers, 40);
  EXPECT_EQ(c.model.dit.in_dim, 36);
  EXPECT_TRUE(c.model.dit.concat_first_frame_latent) << "in_dim 36 is 16 + 4 + 16";
  EXPECT_EQ(c.model.codec.type, "wan21");
  EXPECT_EQ(c.model.codec.channels, 16);
  EXPECT_EQ(c.model.codec.stride_hw, 8);
  EXPECT_EQ(c.model.codec.encoder_dim, 96);
  EXPECT_EQ(c.model.codec.decoder_dim, 96);
  EXPECT_EQ(c.model.target_height, 0) << "the 14B resizes nothing";
  EXPECT_EQ(c.model.text_encoder.dim, 4096);
  EXPECT_EQ(c.model.text_encoder.max_length, 512);
  EXPECT_EQ(c.model.dit.encoder_hidden, 1024) << "the head's hidden_size 64 is another thing";
  EXPECT_EQ(c.max_chunk_size, 4);
  EXPECT_EQ(c.actions_per_block, 24);
  EXPECT_EQ(c.model.latent_frames_per_block, 2);
  EXPECT_TRUE(c.open_encoder_hidden && c.open_action_dim && c.open_state_dim);
  EXPECT_EQ(c.lora_scale, 1.0);
}

TEST(GearConfigTest, TheFiveBillionShapesAreRead) {
  const GearConfig c = parsed(droid_5b());
  EXPECT_EQ(c.model.dit.type, "ti2v");
  EXPECT_EQ(c.model.dit.dim, 3072);
  EXPECT_EQ(c.model.codec.type, "wan22");
  EXPECT_EQ(c.model.codec.channels, 48);
  EXPECT_EQ(c.model.codec.stride_hw, 16);
  EXPECT_EQ(c.model.codec.encoder_dim, 160);
  EXPECT_EQ(c.model.codec.decoder_dim, 256);
  EXPECT_FALSE(c.model.dit.concat_first_frame_latent);
  EXPECT_EQ(c.model.target_height, 160);
  EXPECT_EQ(c.model.target_width, 320);
  EXPECT_EQ(gear_frame_tokens(c.model.codec, 160, 320), 50);
}

TEST(GearConfigTest, TheVaeIsChosenByItsWidthAndElseByTheInputChannels) {
  json root = droid_5b();
  head_of(root)["vae_cfg"] = json::object();
  EXPECT_EQ(parsed(root).model.codec.type, "wan22");
  head_of(root).erase("vae_cfg");
  EXPECT_EQ(parsed(root).model.codec.channels, 48);
}

TEST(GearConfigTest, FiftyTokensWithoutATargetMeanTheImplicitResize) {
  json root = droid_5b();
  head_of(root).erase("target_video_height");
  head_of(root)["target_video_width"] = nullptr;
  const GearConfig c = parsed(root);
  EXPECT_EQ(c.model.target_height, 176);
  EXPECT_EQ(c.model.target_width, 320);
  dit_of(root)["frame_seqlen"] = 55;
  EXPECT_EQ(parsed(root).model.target_height, 176);
}

TEST(GearConfigTest, AdaptersNoiseAndInferenceSwitchesAreRead) {
  json root = droid_14b();
  head_of(root).update({{"train_architecture", "lora"},
                        {"lora_rank", 8},
                        {"lora_alpha", 4.0},
                        {"lora_target_modules", "q, v"},
                        {"decouple_inference_noise", true},
                        {"video_inference_final_noise", 0.7},
                        {"use_high_noise_emphasis", true}});
  const GearConfig c = parsed(root);
  EXPECT_EQ(c.model.train_architecture, "lora");
  EXPECT_EQ(c.lora_scale, 0.5);
  EXPECT_THAT(c.model.lora.targets, ElementsAre("q", "v"));
  EXPECT_TRUE(c.decouple_inference_noise);
  EXPECT_EQ(c.video_inference_final_noise, 0.7);
  EXPECT_TRUE(c.model.noise.high_noise_emphasis);
}

TEST(GearConfigTest, WhatIsMissingOrWrongIsRefusedByName) {
  json root = droid_5b();
  root["model_type"] = "llama";
  EXPECT_THAT(refused(root), HasSubstr("model_type is 'llama'"));
  root = droid_5b();
  head_of(root).erase("diffusion_model_cfg");
  EXPECT_THAT(refused(root), HasSubstr("diffusion_model_cfg is missing"));
  root = droid_5b();
  dit_of(root).erase("ffn_dim");
  EXPECT_THAT(refused(root), HasSubstr("diffusion_model_cfg has no ffn_dim"));
  root = droid_5b();
  dit_of(root)["dim"] = "3072";
  EXPECT_THAT(refused(root), HasSubstr("dim = \"3072\"; wanted an integer"));
  root = droid_5b();
  dit_of(root)["num_heads"] = 0;
  EXPECT_THAT(refused(root), HasSubstr("diffusion_model_cfg has num_heads = 0; wanted at least 1"));
  root = droid_5b();
  head_of(root)["text_encoder_cfg"]["num_heads"] = 0;
  EXPECT_THAT(refused(root), HasSubstr("text_encoder_cfg has num_heads = 0; wanted at least 1"));
  root = droid_5b();
  head_of(root)["vae_cfg"]["stride_hw"] = 0;
  EXPECT_THAT(refused(root), HasSubstr("vae_cfg has stride_hw = 0; wanted at least 1"));
  root = droid_5b();
  head_of(root)["action_horizon"] = 16;
  EXPECT_THAT(refused(root), HasSubstr("action_horizon is 16 and diffusion_model_cfg.num_action_per_block 24"));
  root = droid_5b();
  dit_of(root)["max_chunk_size"] = -1;
  EXPECT_THAT(refused(root), HasSubstr("max_chunk_size is -1"));
  root = droid_5b();
  dit_of(root)["frame_seqlen"] = 880;
  EXPECT_THAT(refused(root), HasSubstr("frame_seqlen is 880; a target of 160x320 gives 50"));
  root = droid_5b();
  head_of(root).erase("target_video_width");
  EXPECT_THAT(refused(root), HasSubstr("must be given together"));
  EXPECT_THAT(refused(json::array()), HasSubstr("wanted an object"));
  EXPECT_FALSE(parse_gear_config("{\"action_head_cfg\":", "config.json"));
}

TEST(GearConfigTest, RlinfsModelTypeIsReadToo) {
  json root = droid_5b();
  root["model_type"] = "dreamzero";
  EXPECT_EQ(parsed(root).model.dit.dim, 3072);
}

TEST(GearConfigTest, WhatIsWrittenIsReadBack) {
  for (const json& root : {droid_5b(), droid_14b()}) {
    GearConfig c = parsed(root);
    if (c.model.target_height == 0) {
      c.model.target_height = 352;
      c.model.target_width = 640;
    }
    c.layout = "droid";
    c.prompt = "oxe_droid";
    c.macro_stride = 24;
    c.video_offsets = {0, 3, 6, 9, 12, 15, 18, 21};
    const auto again = parse_gear_config(gear_config_json(c), "config.json");
    EXPECT_EQ(text_of(again->model), text_of(c.model));
    EXPECT_EQ(again->layout, c.layout);
    EXPECT_EQ(again->prompt, c.prompt);
    EXPECT_EQ(again->macro_stride, 24);
    EXPECT_EQ(again->video_offsets, c.video_offsets);
    EXPECT_EQ(again->actions_per_block, 24);
    EXPECT_EQ(again->max_chunk_size, 4);
    EXPECT_FALSE(again->open_state_dim) << "an export names every size";
  }
}

TEST(GearConfigTest, SmallNetworksAndTheCosineCodecAreWrittenInFull) {
  GearConfig c = parsed(droid_5b());
  TextEncoderConfig& text = c.model.text_encoder;
  text.vocab = 384;
  text.dim = 64;
  text.dim_attn = 32;
  text.dim_ff = 128;
  text.num_heads = text.num_layers = 2;
  text.max_length = 64;
  c.model.image_encoder = {.image_size = 56,
                           .patch_size = 14,
                           .dim = 64,
                           .mlp_dim = 128,
                           .num_heads = 2,
                           .num_layers = 3,
                           .head_dim_out = 32};
  c.model.codec = {.type = "dct", .channels = 16, .stride_t = 4, .stride_hw = 16, .encoder_dim = 96, .decoder_dim = 96};
  c.model.dit.in_dim = c.model.dit.out_dim = 16;
  c.model.target_height = 64;
  c.model.target_width = 128;
  c.byte_tokenizer = true;
  const auto again = parse_gear_config(gear_config_json(c), "config.json");
  EXPECT_EQ(text_of(again->model), text_of(c.model));
  EXPECT_TRUE(again->byte_tokenizer);
  // What the reference builds from its classes' defaults is not named there.
  const json published = json::parse(gear_config_json(parsed(droid_5b())));
  EXPECT_FALSE(published["action_head_cfg"]["config"]["text_encoder_cfg"].contains("vocab"));
  EXPECT_EQ(published["model_type"], "vla");
}

}  // namespace
}  // namespace troupe::workers

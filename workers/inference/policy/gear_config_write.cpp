#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "workers/inference/policy/gear_config.h"

namespace troupe::workers {

namespace {

using SortedJson = nlohmann::json;  // sorted keys

constexpr const char* kModules = "groot.vla.model.dreamzero.modules.";

void put_if_other(SortedJson& object, const char* key, std::int64_t value, std::int64_t published) {
  if (value != published) object[key] = value;
}

SortedJson dit_json(const GearConfig& config) {
  const ModelConfig& m = config.model;
  return {{"_target_", std::string(kModules) + "wan_video_dit_action_casual_chunk.CausalWanModel"},
          {"_convert_", "object"},
          {"model_type", m.dit.type},
          {"dim", m.dit.dim},
          {"num_heads", m.dit.num_heads},
          {"num_layers", m.dit.num_layers},
          {"ffn_dim", m.dit.ffn_dim},
          {"in_dim", m.dit.in_dim},
          {"out_dim", m.dit.out_dim},
          {"freq_dim", m.dit.freq_dim},
          {"eps", m.dit.eps},
          {"hidden_size", m.dit.encoder_hidden},
          {"action_dim", m.dit.action_dim},
          {"max_state_dim", m.dit.max_state_dim},
          {"text_dim", m.text_encoder.dim},
          {"text_len", m.text_encoder.max_length},
          {"concat_first_frame_latent", m.dit.concat_first_frame_latent},
          {"frame_seqlen", gear_frame_tokens(m.codec, m.target_height, m.target_width)},
          {"max_chunk_size", config.max_chunk_size},
          {"num_frame_per_block", m.latent_frames_per_block},
          {"num_action_per_block", config.actions_per_block},
          {"num_state_per_block", m.states_per_block}};
}

SortedJson encoder_json(const ModelConfig& m) {
  const TextEncoderConfig published_text;
  const ImageEncoderConfig published_image;
  const TextEncoderConfig& t = m.text_encoder;
  const ImageEncoderConfig& i = m.image_encoder;
  SortedJson text = {{"_target_", std::string(kModules) + "wan_video_text_encoder.WanTextEncoder"},
                     {"_convert_", "object"}};
  put_if_other(text, "vocab", t.vocab, published_text.vocab);
  put_if_other(text, "dim", t.dim, published_text.dim);
  put_if_other(text, "dim_attn", t.dim_attn, published_text.dim_attn);
  put_if_other(text, "dim_ffn", t.dim_ff, published_text.dim_ff);
  put_if_other(text, "num_heads", t.num_heads, published_text.num_heads);
  put_if_other(text, "num_layers", t.num_layers, published_text.num_layers);
  put_if_other(text, "num_buckets", t.num_buckets, published_text.num_buckets);
  SortedJson image = {{"_target_", std::string(kModules) + "wan_video_image_encoder.WanImageEncoder"},
                      {"_convert_", "object"}};
  put_if_other(image, "image_size", i.image_size, published_image.image_size);
  put_if_other(image, "patch_size", i.patch_size, published_image.patch_size);
  put_if_other(image, "dim", i.dim, published_image.dim);
  put_if_other(image, "mlp_dim", i.mlp_dim, published_image.mlp_dim);
  put_if_other(image, "num_heads", i.num_heads, published_image.num_heads);
  put_if_other(image, "num_layers", i.num_layers, published_image.num_layers);
  put_if_other(image, "out_dim", i.head_dim_out, published_image.head_dim_out);
  return {{"text_encoder_cfg", text}, {"image_encoder_cfg", image}};
}

SortedJson vae_json(const LatentCodecConfig& codec) {
  const bool wan22 = codec.type == "wan22";
  SortedJson vae = {{"z_dim", codec.channels}};
  if (codec.type == "dct") {
    // The cosine transform is Troupe's own and has no weights; the reference has no such class.
    vae["type"] = codec.type;
    vae["stride_t"] = codec.stride_t;
    vae["stride_hw"] = codec.stride_hw;
    return vae;
  }
  vae["_target_"] = std::string(kModules) + "wan_video_vae." + (wan22 ? "WanVideoVAE38" : "WanVideoVAE");
  vae["_convert_"] = "object";
  // z_dim 48 alone says Wan2.2; any other width must say which VAE it is.
  if (codec.channels != (wan22 ? 48 : 16)) vae["type"] = codec.type;
  if (wan22) vae["dim"] = codec.encoder_dim;
  if (!wan22) put_if_other(vae, "dim", codec.encoder_dim, 96);
  put_if_other(vae, "dec_dim", codec.decoder_dim, wan22 ? 256 : codec.encoder_dim);
  return vae;
}

SortedJson head_json(const GearConfig& config) {
  const ModelConfig& m = config.model;
  const std::int64_t frames = 1 + config.max_chunk_size * m.codec.stride_t * m.latent_frames_per_block;
  SortedJson head = {{"diffusion_model_cfg", dit_json(config)},
                     {"vae_cfg", vae_json(m.codec)},
                     {"action_dim", m.dit.action_dim},
                     {"max_action_dim", m.dit.action_dim},
                     {"max_state_dim", m.dit.max_state_dim},
                     {"action_horizon", config.actions_per_block},
                     {"num_frames", frames},
                     {"num_frame_per_block", m.latent_frames_per_block},
                     {"target_video_height", m.target_height},
                     {"target_video_width", m.target_width},
                     {"tiled", false},
                     {"tune_diffusion_model", true},
                     {"skip_component_loading", true},
                     {"train_architecture", m.train_architecture},
                     {"lora_rank", m.lora.rank},
                     {"lora_alpha", m.lora.alpha},
                     {"lora_target_modules", fmt::format("{}", fmt::join(m.lora.targets, ","))},
                     {"init_lora_weights", "kaiming"},
                     {"decouple_video_action_noise", m.noise.decouple_video_action},
                     {"use_high_noise_emphasis", m.noise.high_noise_emphasis},
                     {"high_noise_beta_alpha", m.noise.high_noise_beta_alpha},
                     {"video_noise_beta_alpha", m.noise.video_noise_beta_alpha},
                     {"video_noise_beta_beta", m.noise.video_noise_beta_beta},
                     {"decouple_inference_noise", config.decouple_inference_noise},
                     {"video_inference_final_noise", config.video_inference_final_noise}};
  head.update(encoder_json(m));
  return head;
}

}  // namespace

std::string gear_config_json(const GearConfig& config) {
  SortedJson own = {{"layout", config.layout},
                    {"prompt", config.prompt},
                    {"language_key", config.language_key},
                    {"macro_stride", config.macro_stride},
                    {"video_offsets", config.video_offsets},
                    {"text_tail", config.model.text_encoder.tail}};
  if (config.whole_state) own["whole_state"] = true;
  if (config.whole_action) own["whole_action"] = true;
  if (config.byte_tokenizer) own["tokenizer"] = "utf8_bytes";
  const char* action_head = "groot.vla.model.dreamzero.action_head.wan_flow_matching_action_tf.";
  const SortedJson root = {
      {"model_type", "vla"},
      {"architectures", {"VLA"}},
      {"action_horizon", config.actions_per_block},
      {"action_dim", config.model.dit.action_dim},
      {"backbone_cfg", {{"_target_", "groot.vla.model.dreamzero.backbone.identity.IdentityBackbone"}}},
      {"action_head_cfg",
       {{"_target_", std::string(action_head) + "WANPolicyHead"},
        {"_convert_", "object"},
        {"config", head_json(config)}}},
      {"troupe", own}};
  return root.dump(2) + "\n";
}

}  // namespace troupe::workers

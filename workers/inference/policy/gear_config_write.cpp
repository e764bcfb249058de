#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "workers/inference/policy/gear_config.h"
#include "workers/inference/policy/gear_fields.h"

namespace troupe::workers {

namespace {

using SortedJson = nlohmann::json;  // sorted keys

constexpr const char* kModules = "groot.vla.model.dreamzero.modules.";

void put_if_other(SortedJson& object, const char* key, std::int64_t value, std::int64_t published) {
  if (value != published) object[key] = value;
}

/// The sizes that are not those of the published network, which the defaults are.
template <class Sizes, class Config>
void put_others(SortedJson& object, const Sizes& sizes, const Config& config) {
  for (const auto& [name, value] : sizes) put_if_other(object, name, config.*value, Config().*value);
}

SortedJson dit_json(const GearConfig& config) {
  const ModelConfig& m = config.model;
  SortedJson json = {{"_target_", std::string(kModules) + "wan_video_dit_action_casual_chunk.CausalWanModel"},
                     {"_convert_", "object"},
                     {"model_type", m.dit.type},
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
  for (const auto& [name, value] : kGearDitSizes) json[name] = m.dit.*value;
  return json;
}

SortedJson encoder_json(const ModelConfig& m) {
  SortedJson text = {{"_target_", std::string(kModules) + "wan_video_text_encoder.WanTextEncoder"},
                     {"_convert_", "object"}};
  put_others(text, kGearTextSizes, m.text_encoder);
  SortedJson image = {{"_target_", std::string(kModules) + "wan_video_image_encoder.WanImageEncoder"},
                      {"_convert_", "object"}};
  put_others(image, kGearImageSizes, m.image_encoder);
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

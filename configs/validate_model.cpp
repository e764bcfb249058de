#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "configs/validate.h"

namespace troupe::configs {

namespace {

void validate_dit(const DitConfig& dit, const LatentCodecConfig& codec, Rules& rules) {
  const bool divides = dit.dim % dit.num_heads == 0;
  rules.require(divides, "model.dit.dim", fmt::format("{} is not a multiple of num_heads {}", dit.dim, dit.num_heads),
                {"model.dit.num_heads"});
  // Rotary positions split a head into frame, row and column parts of dh - 4 (dh / 6), 2 (dh / 6), 2 (dh / 6) channels.
  const std::int64_t head = dit.dim / dit.num_heads, side = 2 * (head / 6), frame = head - 2 * side;
  rules.require(
      !divides || (head % 2 == 0 && side > 0 && frame > 0), "model.dit.dim",
      fmt::format("{} / num_heads {} gives heads of {} channels; rotary positions need an even number of at least 6",
                  dit.dim, dit.num_heads, head),
      {"model.dit.num_heads"});
  rules.require(dit.freq_dim % 2 == 0, "model.dit.freq_dim",
                fmt::format("{} is odd; the sinusoid has a cosine for every sine", dit.freq_dim));
  const std::int64_t wanted = dit.concat_first_frame_latent ? 2 * codec.channels + 4 : codec.channels;
  rules.require(dit.in_dim == wanted, "model.dit.in_dim",
                fmt::format("{} must be {}: {} codec channels{}", dit.in_dim, wanted, codec.channels,
                            dit.concat_first_frame_latent ? ", 4 of mask and the first frame's latent" : ""),
                {"model.codec.channels", "model.dit.concat_first_frame_latent"});
  rules.require(dit.out_dim == codec.channels, "model.dit.out_dim",
                fmt::format("{} must be model.codec.channels {}", dit.out_dim, codec.channels),
                {"model.codec.channels"});
}

void validate_codec(const ModelConfig& model, Rules& rules) {
  const LatentCodecConfig& codec = model.codec;
  const std::int64_t coefficients = 3 * codec.stride_t * codec.stride_hw * codec.stride_hw;
  rules.require(codec.type != "dct" || codec.channels <= coefficients, "model.codec.channels",
                fmt::format("{} is more than the 3 x stride_t {} x stride_hw {}^2 = {} coefficients of a block",
                            codec.channels, codec.stride_t, codec.stride_hw, coefficients),
                {"model.codec.stride_t", "model.codec.stride_hw"});
  // the VAEs' layers fix their strides; their widths are free, so that small ones can be tested
  const bool is_vae = codec.type == "wan21" || codec.type == "wan22";
  const auto check_stride = [&](const char* path, std::int64_t stride, std::int64_t wanted) {
    rules.require(!is_vae || stride == wanted, path,
                  fmt::format("{} must be {} with model.codec.type {}", stride, wanted, codec.type),
                  {"model.codec.type"});
  };
  check_stride("model.codec.stride_t", codec.stride_t, 4);
  check_stride("model.codec.stride_hw", codec.stride_hw, codec.type == "wan22" ? 16 : 8);
  const auto check_side = [&](const char* path, std::int64_t pixels) {
    // an odd number of latent rows is allowed: the patch embedding drops the last one
    rules.require(
        pixels % codec.stride_hw == 0 && pixels >= 2 * codec.stride_hw, path,
        fmt::format("{} must be a multiple of model.codec.stride_hw {} and at least {}, one patch of two latents",
                    pixels, codec.stride_hw, 2 * codec.stride_hw),
        {"model.codec.stride_hw"});
  };
  check_side("model.target_height", model.target_height);
  check_side("model.target_width", model.target_width);
}

void validate_encoders(const ModelConfig& model, Rules& rules) {
  const TextEncoderConfig& text = model.text_encoder;
  rules.require(text.dim_attn % text.num_heads == 0, "model.text_encoder.dim_attn",
                fmt::format("{} is not a multiple of num_heads {}", text.dim_attn, text.num_heads),
                {"model.text_encoder.num_heads"});
  rules.require(text.num_buckets % 2 == 0, "model.text_encoder.num_buckets",
                fmt::format("{} is odd; half of the buckets look back, half ahead", text.num_buckets));
  const ImageEncoderConfig& image = model.image_encoder;
  rules.require(image.dim % image.num_heads == 0, "model.image_encoder.dim",
                fmt::format("{} is not a multiple of num_heads {}", image.dim, image.num_heads),
                {"model.image_encoder.num_heads"});
  rules.require(image.image_size % image.patch_size == 0, "model.image_encoder.image_size",
                fmt::format("{} is not a multiple of patch_size {}", image.image_size, image.patch_size),
                {"model.image_encoder.patch_size"});
}

void validate_init(const ModelInitConfig& init, const LatentCodecConfig& codec, Rules& rules) {
  rules.require(init.mode == "random" || !init.path.empty(), "model.init.path",
                fmt::format("is empty; mode {} reads the weights from there", init.mode), {"model.init.mode"});
  rules.require(
      init.mode != "random" || init.path.empty(), "model.init.path",
      fmt::format("'{}' would be ignored with mode random; set model.init.mode to checkpoint, components or dreamzero",
                  init.path),
      {"model.init.mode"});
  rules.require(
      codec.type != "dct" || init.vae.empty(), "model.init.vae",
      fmt::format("'{}' would be ignored: codec dct has no weights; set model.codec.type to wan21 or wan22", init.vae),
      {"model.codec.type"});
  const auto refuse_pickle = [&rules](const char* key, const std::string& path) {
    rules.require(
        !path.ends_with(".pth") && !path.ends_with(".pt") && !path.ends_with(".bin"), key,
        fmt::format("'{0}' is a pickle file, which is never loaded here; run: troupe convert weights {0} --to troupe",
                    path));
  };
  refuse_pickle("model.init.path", init.path);
  refuse_pickle("model.init.text_encoder", init.text_encoder);
  refuse_pickle("model.init.image_encoder", init.image_encoder);
  refuse_pickle("model.init.vae", init.vae);
}

void validate_lora(const ModelConfig& model, Rules& rules) {
  if (model.train_architecture != "lora") return;
  // the linears inside blocks; a target is one of them or what follows a dot in it (model/wan/lora.h)
  static const std::set<std::string> kLinears = {"q", "k", "v", "o", "k_img", "v_img", "ffn.0", "ffn.2"};
  for (const std::string& target : model.lora.targets) {
    const std::size_t dot = target.find('.');
    const bool qualified = dot != std::string::npos && kLinears.count(target.substr(dot + 1)) != 0 &&
                           (target.starts_with("self_attn.") || target.starts_with("cross_attn."));
    rules.require(
        kLinears.count(target) != 0 || qualified, "model.lora.targets",
        fmt::format("'{}' names no linear of a block; wants q, k, v, o, k_img, v_img, ffn.0, ffn.2, or one of the "
                    "first six behind self_attn. or cross_attn.",
                    target),
        {"model.train_architecture"});
  }
  rules.require(!model.lora.targets.empty(), "model.lora.targets",
                "is empty; train_architecture lora has nothing to adapt", {"model.train_architecture"});
  rules.require(model.lora.rank <= model.dit.dim, "model.lora.rank",
                fmt::format("{} is more than model.dit.dim {}", model.lora.rank, model.dit.dim), {"model.dit.dim"});
}

}  // namespace

void validate_model(const ModelConfig& model, Rules& rules) {
  validate_dit(model.dit, model.codec, rules);
  validate_codec(model, rules);
  validate_encoders(model, rules);
  validate_init(model.init, model.codec, rules);
  validate_lora(model, rules);
  rules.require(
      model.latent_frames_per_block % model.states_per_block == 0, "model.states_per_block",
      fmt::format("{} must divide latent_frames_per_block {}", model.states_per_block, model.latent_frames_per_block),
      {"model.latent_frames_per_block"});
}

}  // namespace troupe::configs

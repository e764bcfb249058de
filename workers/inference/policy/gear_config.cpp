#include "workers/inference/policy/gear_config.h"

#include <fmt/format.h>

#include "workers/inference/policy/gear_fields.h"
#include "workers/inference/policy/json_fields.h"

namespace troupe::workers {

namespace {

/// frame_seqlen values for which the reference resizes to 176x320 when no target is configured.
constexpr std::int64_t kImplicitTokens[] = {50, 55};
constexpr std::int64_t kImplicitHeight = 176, kImplicitWidth = 320;

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (!part.empty()) parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

/// VAE choice: z_dim 48 is Wan2.2's; without it in_dim decides.
Result<LatentCodecConfig> read_codec(JsonFields vae, std::int64_t in_dim) {
  const std::int64_t z = vae.size("z_dim", in_dim == 48 ? 48 : 16);
  LatentCodecConfig codec;
  codec.type = vae.text("type", z == 48 ? "wan22" : "wan21");
  const bool wan22 = codec.type == "wan22";
  codec.channels = z;
  codec.stride_t = vae.size("stride_t", 4);
  codec.stride_hw = vae.size("stride_hw", wan22 ? 16 : 8);
  codec.encoder_dim = vae.size("dim", wan22 ? 160 : 96);
  codec.decoder_dim = vae.size("dec_dim", wan22 ? 256 : codec.encoder_dim);
  TROUPE_TRY(vae.done());
  if (codec.type != "dct" && codec.type != "wan21" && !wan22) {
    return Error{Errc::invalid_argument, fmt::format("vae_cfg.type is '{}'; wanted wan21, wan22 or dct", codec.type)};
  }
  return codec;
}

Result<void> read_dit(JsonFields dit, JsonFields& head, GearConfig& out) {
  DitConfig& d = out.model.dit;
  d.type = dit.text("model_type", "i2v");
  for (const auto& [name, value] : kGearDitSizes) d.*value = dit.size(name);
  d.freq_dim = dit.size("freq_dim", 256);
  d.eps = dit.number("eps", 1e-6);
  d.encoder_hidden = dit.size("hidden_size", 1024);
  d.action_dim = dit.size("action_dim", head.integer("action_dim", 32));
  d.max_state_dim = dit.size("max_state_dim", 64);
  out.open_encoder_hidden = !dit.has("hidden_size");
  out.open_action_dim = !dit.has("action_dim");
  out.open_state_dim = !dit.has("max_state_dim");
  d.concat_first_frame_latent = dit.boolean("concat_first_frame_latent", d.in_dim != d.out_dim);
  out.model.text_encoder.dim = dit.size("text_dim", 4096);
  out.model.text_encoder.max_length = dit.size("text_len", 512);
  out.model.latent_frames_per_block = dit.size("num_frame_per_block", head.integer("num_frame_per_block", 1));
  out.model.states_per_block = dit.size("num_state_per_block", 1);
  out.actions_per_block = dit.size("num_action_per_block", 32);
  if (d.type != "ti2v" && d.type != "i2v") {
    return Error{Errc::invalid_argument,
                 fmt::format("diffusion_model_cfg.model_type is '{}'; wanted ti2v or i2v", d.type)};
  }
  return dit.done();
}

Result<void> read_encoders(JsonFields text, JsonFields image, ModelConfig& model) {
  TextEncoderConfig& t = model.text_encoder;
  for (const auto& [name, value] : kGearTextSizes) t.*value = text.size(name, t.*value);
  ImageEncoderConfig& i = model.image_encoder;
  for (const auto& [name, value] : kGearImageSizes) i.*value = image.size(name, i.*value);
  TROUPE_TRY(text.done());
  return image.done();
}

Result<void> read_target(JsonFields& head, std::int64_t tokens, ModelConfig& model) {
  model.target_height = head.integer("target_video_height", 0);
  model.target_width = head.integer("target_video_width", 0);
  if ((model.target_height == 0) != (model.target_width == 0)) {
    return Error{Errc::invalid_argument, "target_video_height and target_video_width must be given together"};
  }
  const bool implicit = tokens == kImplicitTokens[0] || tokens == kImplicitTokens[1];
  if (model.target_height == 0 && implicit) {
    model.target_height = kImplicitHeight;
    model.target_width = kImplicitWidth;
  }
  if (model.target_height == 0 || tokens == 0) return {};
  const std::int64_t found = gear_frame_tokens(model.codec, model.target_height, model.target_width);
  // 176x320 with a stride of 16 floors to the tokens of 160x320; configurations say 55 for it too.
  if (found == tokens || (implicit && found == kImplicitTokens[0])) return {};
  return Error{Errc::invalid_argument,
               fmt::format("diffusion_model_cfg.frame_seqlen is {}; a target of {}x{} gives {} tokens per latent frame",
                           tokens, model.target_height, model.target_width, found)};
}

Result<void> read_training(JsonFields& head, GearConfig& out) {
  ModelConfig& m = out.model;
  m.train_architecture = head.text("train_architecture", "full");
  m.lora.rank = head.integer("lora_rank", 4);
  m.lora.alpha = head.number("lora_alpha", 4);
  m.lora.targets = split_commas(head.text("lora_target_modules", "q,k,v,o,ffn.0,ffn.2"));
  m.noise.decouple_video_action = head.boolean("decouple_video_action_noise", false);
  m.noise.high_noise_emphasis = head.boolean("use_high_noise_emphasis", false);
  m.noise.high_noise_beta_alpha = head.number("high_noise_beta_alpha", 3.0);
  m.noise.video_noise_beta_alpha = head.number("video_noise_beta_alpha", 3.0);
  m.noise.video_noise_beta_beta = head.number("video_noise_beta_beta", 1.0);
  out.decouple_inference_noise = head.boolean("decouple_inference_noise", false);
  out.video_inference_final_noise = head.number("video_inference_final_noise", 0.8);
  if (m.lora.rank < 1) return Error{Errc::invalid_argument, fmt::format("lora_rank is {}", m.lora.rank)};
  out.lora_scale = m.lora.alpha / static_cast<double>(m.lora.rank);
  return {};
}

Result<void> read_own(JsonFields own, GearConfig& out) {
  out.layout = own.text("layout", "");
  out.prompt = own.text("prompt", "");
  out.language_key = own.text("language_key", "");
  out.macro_stride = own.integer("macro_stride", 0);
  out.byte_tokenizer = own.text("tokenizer", "") == "utf8_bytes";
  out.whole_state = own.boolean("whole_state", false);
  out.whole_action = own.boolean("whole_action", false);
  out.model.text_encoder.tail = own.text("text_tail", "per_sample");
  TROUPE_TRY(own.done());
  if (!own.has("video_offsets")) return {};
  for (const auto& value : own.json()["video_offsets"]) {
    if (!value.is_number_integer()) return Error{Errc::invalid_argument, "troupe.video_offsets wants integers"};
    out.video_offsets.push_back(value.get<std::int64_t>());
  }
  return {};
}

Result<GearConfig> read_config(JsonFields& root, JsonFields& head) {
  GearConfig out;
  if (!head.has("diffusion_model_cfg")) {
    return Error{Errc::invalid_argument,
                 "action_head_cfg.config.diffusion_model_cfg is missing: no DreamZero configuration"};
  }
  JsonFields dit = head.object("diffusion_model_cfg");
  TROUPE_ASSIGN(out.model.codec, read_codec(head.object("vae_cfg"), dit.integer("in_dim", 0)));
  TROUPE_TRY(read_dit(dit, head, out));
  TROUPE_TRY(read_encoders(head.object("text_encoder_cfg"), head.object("image_encoder_cfg"), out.model));
  TROUPE_TRY(read_target(head, dit.integer("frame_seqlen", 0), out.model));
  TROUPE_TRY(read_training(head, out));
  TROUPE_TRY(read_own(root.object("troupe"), out));
  const std::int64_t per_block =
      out.model.codec.stride_t * std::max<std::int64_t>(1, out.model.latent_frames_per_block);
  out.max_chunk_size = dit.integer("max_chunk_size", (head.integer("num_frames", 33) - 1) / per_block);
  if (out.max_chunk_size < 1) {
    return Error{
        Errc::invalid_argument,
        fmt::format("diffusion_model_cfg.max_chunk_size is {}; a window of blocks is needed", out.max_chunk_size)};
  }
  const std::int64_t horizon = head.integer("action_horizon", root.integer("action_horizon", out.actions_per_block));
  if (horizon != out.actions_per_block) {
    return Error{Errc::invalid_argument,
                 fmt::format("action_horizon is {} and diffusion_model_cfg.num_action_per_block {}; they must be equal",
                             horizon, out.actions_per_block)};
  }
  TROUPE_TRY(dit.done());
  TROUPE_TRY(head.done());
  return out;
}

}  // namespace

std::int64_t gear_frame_tokens(const LatentCodecConfig& codec, std::int64_t height, std::int64_t width) {
  return (height / codec.stride_hw / 2) * (width / codec.stride_hw / 2);
}

Result<GearConfig> parse_gear_config(const std::string& text, const std::string& path) {
  TROUPE_ASSIGN(const JsonFields::Json json, parse_json_object(text, path));
  JsonFields root(json, path + ":");
  const std::string type = root.text("model_type", "vla");
  JsonFields action_head = root.object("action_head_cfg");
  JsonFields head = action_head.object("config");
  TROUPE_TRY(root.done());
  TROUPE_TRY(action_head.done());
  TROUPE_TRY(head.done());
  if (type != "vla" && type != "dreamzero") {
    return Error{Errc::invalid_argument, fmt::format("{}: model_type is '{}'; wanted vla or dreamzero", path, type)};
  }
  auto config = read_config(root, head);
  if (!config) {
    const bool named = config.error().message().starts_with(path);
    return named ? config.error() : config.error().with(path);
  }
  return config;
}

}  // namespace troupe::workers

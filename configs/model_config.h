#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "configs/bounds.h"

namespace troupe::configs {

/// DreamZero's diffusion transformer, Wan's DiT (arXiv:2503.20314) with state and action tokens (docs/model.md). Tiny,
/// 5B and 14B are three presets of these fields.
struct DitConfig {
  /// Read by model/wan/weights, workers/inference/policy, app.
  /// i2v adds the image encoder's 257 tokens to the cross attention.
  std::string type = "ti2v";
  /// Channels, 8 to 65536.
  /// A multiple of num_heads whose quotient is even and at least 6: rotary positions split it into frame, row and
  /// column.
  std::int64_t dim = 3072;
  /// 1 to 1024.
  std::int64_t num_heads = 24;
  /// 1 to 1024.
  std::int64_t num_layers = 30;
  /// Channels, 8 to 2^20.
  std::int64_t ffn_dim = 14336;
  /// Channels, 2 to 65536.
  /// Even: a cosine for every sine.
  std::int64_t freq_dim = 256;
  /// Channels, 1 to 65536.
  /// codec.channels, or 2 * codec.channels + 4 with concat_first_frame_latent: 4 channels of mask and the first
  /// frame.
  std::int64_t in_dim = 48;
  /// Channels, 1 to 65536.
  /// Equal to codec.channels.
  std::int64_t out_dim = 48;
  /// Channels, 1 to 65536. Read by workers/inference/policy, model/wan, model/wan/weights.
  std::int64_t encoder_hidden = 1024;
  /// 1 to 4096.
  /// Actions and states are padded with zeros to these widths; loss and output of the padding are masked.
  std::int64_t action_dim = 32;
  /// 1 to 4096.
  std::int64_t max_state_dim = 64;
  bool concat_first_frame_latent = false;
  /// 0 to 1. Read by model/wan/infer, model/wan, workers/inference/policy.
  double eps = 1e-6;

  template <class V>
  static void describe(V& v) {
    v.choice("type", &DitConfig::type,
             "ti2v (Wan2.2) or i2v (Wan2.1, with mask and first-frame latent as input channels)", {"ti2v", "i2v"});
    v.field("dim", &DitConfig::dim, "width d", "channels", 8, 65536);
    v.field("num_heads", &DitConfig::num_heads, "attention heads; d / heads must be even", "count", 1, 1024);
    v.field("num_layers", &DitConfig::num_layers, "transformer blocks", "count", 1, 1024);
    v.field("ffn_dim", &DitConfig::ffn_dim, "hidden width of the feed-forward layers", "channels", 8, 1 << 20);
    v.field("freq_dim", &DitConfig::freq_dim, "width of the timestep sinusoid", "channels", 2, 65536);
    v.field("in_dim", &DitConfig::in_dim, "channels entering the patch embedding", "channels", 1, 65536);
    v.field("out_dim", &DitConfig::out_dim, "latent channels predicted", "channels", 1, 65536);
    v.field("encoder_hidden", &DitConfig::encoder_hidden, "hidden width of the state encoder and action decoder",
            "channels", 1, 65536);
    v.field("action_dim", &DitConfig::action_dim, "padded action dimensions", "count", 1, 4096);
    v.field("max_state_dim", &DitConfig::max_state_dim, "padded state dimensions", "count", 1, 4096);
    v.field("concat_first_frame_latent", &DitConfig::concat_first_frame_latent,
            "append mask and first-frame latent to the input channels (i2v)");
    v.field("eps", &DitConfig::eps, "epsilon of every normalisation", "", 0, 1);
  }
};

/// UMT5 text encoder (arXiv:2304.09151), the encoder half only, frozen (docs/text.md#features-and-tails).
struct TextEncoderConfig {
  /// 259 to 2^24.
  /// At least 259: 256 bytes and three special tokens, for the tokenizer that needs no file.
  std::int64_t vocab = 256384;
  /// Channels, 8 to 65536.
  std::int64_t dim = 4096;
  /// Channels, 8 to 65536.
  /// A multiple of num_heads.
  std::int64_t dim_attn = 4096;
  /// Channels, 8 to 2^20.
  std::int64_t dim_ff = 10240;
  /// 1 to 1024.
  std::int64_t num_heads = 64;
  /// 1 to 1024.
  std::int64_t num_layers = 24;
  /// 2 to 1024.
  /// Even: half of the buckets look back, half ahead.
  std::int64_t num_buckets = 32;
  /// Tokens, 2 to 4096.
  std::int64_t max_length = 512;
  /// Read by data/language, workers/inference/policy.
  std::string tokenizer;
  std::string tail = "per_sample";

  template <class V>
  static void describe(V& v) {
    v.field("vocab", &TextEncoderConfig::vocab, "rows of the token embedding", "count", 259, 1 << 24);
    v.field("dim", &TextEncoderConfig::dim, "width", "channels", 8, 65536);
    v.field("dim_attn", &TextEncoderConfig::dim_attn, "width of all heads together", "channels", 8, 65536);
    v.field("dim_ff", &TextEncoderConfig::dim_ff, "hidden width of the gated feed-forward layers", "channels", 8,
            1 << 20);
    v.field("num_heads", &TextEncoderConfig::num_heads, "attention heads", "count", 1, 1024);
    v.field("num_layers", &TextEncoderConfig::num_layers, "transformer blocks", "count", 1, 1024);
    v.field("num_buckets", &TextEncoderConfig::num_buckets, "relative position buckets", "count", 2, 1024);
    v.field("max_length", &TextEncoderConfig::max_length, "tokens per prompt after padding and truncation", "tokens", 2,
            4096);
    v.field("tokenizer", &TextEncoderConfig::tokenizer,
            "SentencePiece model file, or a folder with spiece.model (and tokenizer.json), or owner/name of the "
            "Hugging Face "
            "cache; empty: UTF-8 bytes as tokens");
    v.choice("tail", &TextEncoderConfig::tail,
             "what is zeroed behind a prompt: from its own length, or from the shortest of the micro-batch as the "
             "reference does",
             {"per_sample", "batch_min"});
  }
};

/// CLIP's image encoder ViT-H/14 (arXiv:2103.00020), frozen. Only the first num_layers - 1 blocks are run.
struct ImageEncoderConfig {
  /// Pixels, 8 to 4096.
  /// A multiple of patch_size.
  std::int64_t image_size = 224;
  /// Pixels, 2 to 512.
  std::int64_t patch_size = 14;
  /// Channels, 8 to 65536.
  /// A multiple of num_heads.
  std::int64_t dim = 1280;
  /// Channels, 8 to 2^20.
  std::int64_t mlp_dim = 5120;
  /// 1 to 1024.
  std::int64_t num_heads = 16;
  /// 2 to 1024.
  std::int64_t num_layers = 32;
  /// Channels, 1 to 65536. Read by workers/inference/policy, model/wan, model/wan/weights.
  std::int64_t head_dim_out = 1024;

  template <class V>
  static void describe(V& v) {
    v.field("image_size", &ImageEncoderConfig::image_size, "side of the square the canvas is resized to", "pixels", 8,
            4096);
    v.field("patch_size", &ImageEncoderConfig::patch_size, "side of a patch", "pixels", 2, 512);
    v.field("dim", &ImageEncoderConfig::dim, "width", "channels", 8, 65536);
    v.field("mlp_dim", &ImageEncoderConfig::mlp_dim, "hidden width of the feed-forward layers", "channels", 8, 1 << 20);
    v.field("num_heads", &ImageEncoderConfig::num_heads, "attention heads", "count", 1, 1024);
    v.field("num_layers", &ImageEncoderConfig::num_layers, "blocks in the checkpoint; the last one is not run", "count",
            2, 1024);
    v.field("head_dim_out", &ImageEncoderConfig::head_dim_out,
            "columns of the unused projection (kept for the checkpoint's shape)", "channels", 1, 65536);
  }
};

/// How pixels become latents: Wan's causal VAE (docs/vae.md) or the DCT codec (docs/model.md#the-dct-codec).
struct LatentCodecConfig {
  std::string type = "dct";
  /// Channels, 1 to 4096.
  /// dct: at most 3 * stride_t * stride_hw^2, the coefficients of one block of pixels.
  std::int64_t channels = 48;
  /// Frames, 1 to 16.
  /// 4 for the VAEs.
  std::int64_t stride_t = 4;
  /// Pixels, 2 to 64.
  std::int64_t stride_hw = 16;
  /// Channels, 1 to 4096.
  std::int64_t encoder_dim = 160;
  /// Channels, 1 to 4096.
  std::int64_t decoder_dim = 256;

  template <class V>
  static void describe(V& v) {
    v.choice("type", &LatentCodecConfig::type,
             "dct: orthonormal space-time cosine transform, needs no weights; wan21, wan22: Wan's causal VAE, frozen",
             {"dct", "wan21", "wan22"});
    v.field("channels", &LatentCodecConfig::channels, "latent channels; 16 in wan21, 48 in wan22", "channels", 1, 4096);
    v.field("stride_t", &LatentCodecConfig::stride_t, "frames per latent frame after the first", "frames", 1, 16);
    v.field("stride_hw", &LatentCodecConfig::stride_hw, "pixels per latent row and column; 8 in wan21, 16 in wan22",
            "pixels", 2, 64);
    v.field("encoder_dim", &LatentCodecConfig::encoder_dim,
            "base width of the VAE's encoder: 96 in wan21, 160 in wan22; dct ignores it", "channels", 1, 4096);
    v.field("decoder_dim", &LatentCodecConfig::decoder_dim,
            "base width of the VAE's decoder: 96 in wan21, 256 in wan22; dct ignores it", "channels", 1, 4096);
  }
};

/// Where initial weights come from.
struct ModelInitConfig {
  std::string mode = "random";
  /// Empty with mode random, wanted with every other; pickle files (.pth, .pt, .bin) are refused.
  std::string path;
  /// Read by model/wan/weights.
  std::string text_encoder;
  /// Read by model/wan/weights.
  std::string image_encoder;
  /// Read by model/wan/weights.
  std::string vae;

  template <class V>
  static void describe(V& v) {
    v.choice("mode", &ModelInitConfig::mode,
             "random: from job.seed; checkpoint: the weights of a Troupe checkpoint, moments at zero; components: "
             "Wan's DiT at path and its frozen encoders; "
             "dreamzero: a full DreamZero checkpoint",
             {"random", "checkpoint", "components", "dreamzero"});
    v.field("path", &ModelInitConfig::path,
            "checkpoint: .../checkpoints/step_NNNNNN, a run or a job's name; components: safetensors file or folder of "
            "the DiT; dreamzero: folder with config.json and model*.safetensors. Files of the Hugging Face cache as "
            "owner/name or owner/name/PATH");
    v.field("text_encoder", &ModelInitConfig::text_encoder,
            "safetensors file or folder of the UMT5 encoder; empty: from path with mode dreamzero, else from job.seed");
    v.field("image_encoder", &ModelInitConfig::image_encoder,
            "safetensors file or folder of the CLIP image encoder; empty: as text_encoder");
    v.field("vae", &ModelInitConfig::vae,
            "safetensors file or folder of Wan's VAE; empty: as text_encoder; codec dct has none");
  }
};

/// Low-rank adapters (arXiv:2106.09685) with PEFT's names and initial values: A Kaiming-uniform, B zero
/// (docs/checkpoints.md#adapters).
struct LoraConfig {
  /// 1 to 1024. Read by workers/inference/policy, model/wan, workers/checkpoint.
  /// At most dit.dim.
  std::int64_t rank = 4;
  /// Above 0, at most 1e6. Read by workers/inference/policy, model/wan, workers/checkpoint.
  double alpha = 4;
  /// Read by model/wan, workers/inference/policy.
  /// q, k, v, o, k_img, v_img, ffn.0 or ffn.2; the first six also behind self_attn. or cross_attn.; not empty with
  /// lora.
  std::vector<std::string> targets = {"q", "k", "v", "o", "ffn.0", "ffn.2"};

  template <class V>
  static void describe(V& v) {
    v.field("rank", &LoraConfig::rank, "columns of A and rows of B", "count", 1, 1024);
    v.field("alpha", &LoraConfig::alpha, "the adapters' product is scaled by alpha / rank", "", kAboveZero, 1e6);
    v.field("targets", &LoraConfig::targets,
            "suffixes of the linears inside blocks that get adapters; k_img and v_img are not matched by k and v");
  }
};

/// How timesteps are drawn in training, ids 0 to 999. The default mode draws them uniformly, one for each block of
/// latent frames, and the block's actions share it. A Beta mode draws r ~ Beta(a, b) and takes floor((1 - r) * 1000),
/// at most 999.
struct NoiseConfig {
  /// Read by model/wan, workers/inference/policy, workers/learner.
  bool decouple_video_action = false;
  /// Read by model/wan, workers/inference/policy.
  bool high_noise_emphasis = false;
  /// Above 0, at most 1e3. Read by workers/inference/policy, model/wan.
  double high_noise_beta_alpha = 3.0;
  /// Above 0, at most 1e3. Read by workers/inference/policy, model/wan.
  double video_noise_beta_alpha = 3.0;
  /// Above 0, at most 1e3. Read by workers/inference/policy, model/wan.
  double video_noise_beta_beta = 1.0;

  template <class V>
  static void describe(V& v) {
    v.field(
        "decouple_video_action", &NoiseConfig::decouple_video_action,
        "video timesteps from a Beta distribution, each action's uniform and its own; wins over high_noise_emphasis");
    v.field("high_noise_emphasis", &NoiseConfig::high_noise_emphasis,
            "video timesteps from Beta(high_noise_beta_alpha, 1), actions as their block");
    v.field("high_noise_beta_alpha", &NoiseConfig::high_noise_beta_alpha, "first parameter of that distribution", "",
            kAboveZero, 1e3);
    v.field("video_noise_beta_alpha", &NoiseConfig::video_noise_beta_alpha,
            "first parameter with decouple_video_action", "", kAboveZero, 1e3);
    v.field("video_noise_beta_beta", &NoiseConfig::video_noise_beta_beta, "second parameter with decouple_video_action",
            "", kAboveZero, 1e3);
  }
};

/// The model, from configuration alone.
struct ModelConfig {
  DitConfig dit;
  TextEncoderConfig text_encoder;
  ImageEncoderConfig image_encoder;
  LatentCodecConfig codec;
  ModelInitConfig init;
  /// With lora the base weights are frozen and sharded, the adapters replicated on every rank.
  std::string train_architecture = "full";
  LoraConfig lora;
  NoiseConfig noise;
  /// Pixels, 8 to 4096.
  /// Both sides: multiples of codec.stride_hw, at least two of them.
  std::int64_t target_height = 160;
  /// Pixels, 8 to 4096.
  std::int64_t target_width = 320;
  /// Frames, 1 to 64.
  std::int64_t latent_frames_per_block = 2;
  /// 1 to 16. Read by workers/inference/policy, model/wan, model/wan/infer.
  /// Divides latent_frames_per_block.
  std::int64_t states_per_block = 1;
  /// Read by workers/learner.
  /// Loss and gradients are the same up to rounding (docs/model.md#text-rows).
  bool text_pad_collapse = false;

  template <class V>
  static void describe(V& v) {
    v.group("dit", &ModelConfig::dit, "diffusion transformer");
    v.group("text_encoder", &ModelConfig::text_encoder, "UMT5 text encoder, frozen");
    v.group("image_encoder", &ModelConfig::image_encoder, "CLIP image encoder, frozen");
    v.group("codec", &ModelConfig::codec, "pixels to latents");
    v.group("init", &ModelConfig::init, "initial weights");
    v.choice("train_architecture", &ModelConfig::train_architecture,
             "full: every parameter of the DiT; lora: adapters, state encoder, action encoder and decoder",
             {"full", "lora"});
    v.group("lora", &ModelConfig::lora, "low-rank adapters, for train_architecture lora");
    v.group("noise", &ModelConfig::noise, "timesteps drawn in training");
    v.field("target_height", &ModelConfig::target_height, "rows of the canvas entering the codec", "pixels", 8, 4096);
    v.field("target_width", &ModelConfig::target_width, "columns of the canvas entering the codec", "pixels", 8, 4096);
    v.field("latent_frames_per_block", &ModelConfig::latent_frames_per_block,
            "latent frames that share a timestep (nfpb)", "frames", 1, 64);
    v.field("states_per_block", &ModelConfig::states_per_block, "state tokens per block (nspb)", "count", 1, 16);
    v.field("text_pad_collapse", &ModelConfig::text_pad_collapse,
            "in training, embed and project the padding behind a prompt as one row that counts for all of it");
  }
};

}  // namespace troupe::configs

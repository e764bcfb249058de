#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// DreamZero's diffusion transformer (dreamzero-model.md 1.6). Tiny, 5B and 14B are three presets of these fields.
struct DitConfig {
  std::string type = "ti2v";
  std::int64_t dim = 3072;
  std::int64_t num_heads = 24;
  std::int64_t num_layers = 30;
  std::int64_t ffn_dim = 14336;
  std::int64_t freq_dim = 256;
  std::int64_t in_dim = 48;
  std::int64_t out_dim = 48;
  std::int64_t encoder_hidden = 1024;
  std::int64_t action_dim = 32;
  std::int64_t max_state_dim = 64;
  bool concat_first_frame_latent = false;
  double eps = 1e-6;

  template <class V> static void describe(V& v) {
    v.choice("type", &DitConfig::type, "ti2v (Wan2.2) or i2v (Wan2.1, with mask and first-frame latent as input channels)", {"ti2v", "i2v"});
    v.field("dim", &DitConfig::dim, "width d", "channels", 8, 65536);
    v.field("num_heads", &DitConfig::num_heads, "attention heads; d / heads must be even", "count", 1, 1024);
    v.field("num_layers", &DitConfig::num_layers, "transformer blocks", "count", 1, 1024);
    v.field("ffn_dim", &DitConfig::ffn_dim, "hidden width of the feed-forward layers", "channels", 8, 1 << 20);
    v.field("freq_dim", &DitConfig::freq_dim, "width of the timestep sinusoid", "channels", 2, 65536);
    v.field("in_dim", &DitConfig::in_dim, "channels entering the patch embedding", "channels", 1, 65536);
    v.field("out_dim", &DitConfig::out_dim, "latent channels predicted", "channels", 1, 65536);
    v.field("encoder_hidden", &DitConfig::encoder_hidden, "hidden width of the state encoder and action decoder", "channels", 1, 65536);
    v.field("action_dim", &DitConfig::action_dim, "padded action dimensions", "count", 1, 4096);
    v.field("max_state_dim", &DitConfig::max_state_dim, "padded state dimensions", "count", 1, 4096);
    v.field("concat_first_frame_latent", &DitConfig::concat_first_frame_latent, "append mask and first-frame latent to the input channels (i2v)");
    v.field("eps", &DitConfig::eps, "epsilon of every normalisation", "", 0, 1);
  }
};

/// UMT5 text encoder (dreamzero-model.md 4.1).
struct TextEncoderConfig {
  std::int64_t vocab = 256384;
  std::int64_t dim = 4096;
  std::int64_t dim_attn = 4096;
  std::int64_t dim_ff = 10240;
  std::int64_t num_heads = 64;
  std::int64_t num_layers = 24;
  std::int64_t num_buckets = 32;
  std::int64_t max_length = 512;
  std::string tokenizer;

  template <class V> static void describe(V& v) {
    v.field("vocab", &TextEncoderConfig::vocab, "rows of the token embedding", "count", 259, 1 << 24);
    v.field("dim", &TextEncoderConfig::dim, "width", "channels", 8, 65536);
    v.field("dim_attn", &TextEncoderConfig::dim_attn, "width of all heads together", "channels", 8, 65536);
    v.field("dim_ff", &TextEncoderConfig::dim_ff, "hidden width of the gated feed-forward layers", "channels", 8, 1 << 20);
    v.field("num_heads", &TextEncoderConfig::num_heads, "attention heads", "count", 1, 1024);
    v.field("num_layers", &TextEncoderConfig::num_layers, "transformer blocks", "count", 1, 1024);
    v.field("num_buckets", &TextEncoderConfig::num_buckets, "relative position buckets", "count", 2, 1024);
    v.field("max_length", &TextEncoderConfig::max_length, "tokens per prompt after padding and truncation", "tokens", 2, 4096);
    v.field("tokenizer", &TextEncoderConfig::tokenizer, "SentencePiece model file; empty: UTF-8 bytes as tokens");
  }
};

/// CLIP image encoder (dreamzero-model.md 4.3). Only the first num_layers - 1 blocks are run.
struct ImageEncoderConfig {
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  std::int64_t dim = 1280;
  std::int64_t mlp_dim = 5120;
  std::int64_t num_heads = 16;
  std::int64_t num_layers = 32;
  std::int64_t head_dim_out = 1024;

  template <class V> static void describe(V& v) {
    v.field("image_size", &ImageEncoderConfig::image_size, "side of the square the canvas is resized to", "pixels", 8, 4096);
    v.field("patch_size", &ImageEncoderConfig::patch_size, "side of a patch", "pixels", 2, 512);
    v.field("dim", &ImageEncoderConfig::dim, "width", "channels", 8, 65536);
    v.field("mlp_dim", &ImageEncoderConfig::mlp_dim, "hidden width of the feed-forward layers", "channels", 8, 1 << 20);
    v.field("num_heads", &ImageEncoderConfig::num_heads, "attention heads", "count", 1, 1024);
    v.field("num_layers", &ImageEncoderConfig::num_layers, "blocks in the checkpoint; the last one is not run", "count", 2, 1024);
    v.field("head_dim_out", &ImageEncoderConfig::head_dim_out, "columns of the unused projection (kept for the checkpoint's shape)", "channels", 1, 65536);
  }
};

/// How pixels become latents.
struct LatentCodecConfig {
  std::string type = "dct";
  std::int64_t channels = 48;
  std::int64_t stride_t = 4;
  std::int64_t stride_hw = 16;

  template <class V> static void describe(V& v) {
    v.choice("type", &LatentCodecConfig::type, "dct: orthonormal space-time cosine transform, needs no weights", {"dct"});
    v.field("channels", &LatentCodecConfig::channels, "latent channels", "channels", 1, 4096);
    v.field("stride_t", &LatentCodecConfig::stride_t, "frames per latent frame after the first", "frames", 1, 16);
    v.field("stride_hw", &LatentCodecConfig::stride_hw, "pixels per latent row and column", "pixels", 2, 64);
  }
};

/// Where initial weights come from.
struct ModelInitConfig {
  std::string mode = "random";
  std::string path;

  template <class V> static void describe(V& v) {
    v.choice("mode", &ModelInitConfig::mode, "random: from job.seed; checkpoint: the weights of a Troupe checkpoint, moments at zero", {"random", "checkpoint"});
    v.field("path", &ModelInitConfig::path, "checkpoint folder (.../checkpoints/step_NNNNNN) for mode checkpoint");
  }
};

/// The model, from configuration alone.
struct ModelConfig {
  DitConfig dit;
  TextEncoderConfig text_encoder;
  ImageEncoderConfig image_encoder;
  LatentCodecConfig codec;
  ModelInitConfig init;
  std::int64_t target_height = 160;
  std::int64_t target_width = 320;
  std::int64_t latent_frames_per_block = 2;
  std::int64_t states_per_block = 1;

  template <class V> static void describe(V& v) {
    v.group("dit", &ModelConfig::dit, "diffusion transformer");
    v.group("text_encoder", &ModelConfig::text_encoder, "UMT5 text encoder, frozen");
    v.group("image_encoder", &ModelConfig::image_encoder, "CLIP image encoder, frozen");
    v.group("codec", &ModelConfig::codec, "pixels to latents");
    v.group("init", &ModelConfig::init, "initial weights");
    v.field("target_height", &ModelConfig::target_height, "rows of the canvas entering the codec", "pixels", 8, 4096);
    v.field("target_width", &ModelConfig::target_width, "columns of the canvas entering the codec", "pixels", 8, 4096);
    v.field("latent_frames_per_block", &ModelConfig::latent_frames_per_block, "latent frames that share a timestep (nfpb)", "frames", 1, 64);
    v.field("states_per_block", &ModelConfig::states_per_block, "state tokens per block (nspb)", "count", 1, 16);
  }
};

}  // namespace troupe

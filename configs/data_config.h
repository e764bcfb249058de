#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/seconds.h"
#include "configs/bounds.h"
#include "configs/embodiment_config.h"

namespace troupe::configs {

/// One LeRobot dataset of a mixture.
struct DataSetConfig {
  /// Read by app, workers/learner/imitation, data/sampling.
  /// Relative to the working directory; datasets are only read, but for an index folder in
  /// them that data.index.path: beside asks for.
  std::string path{};
  /// Above 0. Read by data/sampling.
  double weight = 1.0;
  /// Read by data/sampling.
  std::string embodiment{};
  /// Read by workers/learner/imitation, data/sampling.
  /// Indices from 0, each once.
  std::vector<std::int64_t> episodes{};
  /// Read by workers/learner/imitation, data/sampling.
  std::vector<std::int64_t> eval_episodes{};

  template <class V>
  static void describe(V& v) {
    v.shorthand("path");
    v.field("path", &DataSetConfig::path,
            "folder with meta/info.json (LeRobot v2.0, v2.1, v3.0), or owner/name of a dataset in LeRobot's or the "
            "Hugging Face cache");
    v.field("weight", &DataSetConfig::weight, "share in the mixture (data.mixture)", "", kAboveZero, kUnbounded);
    v.field("embodiment", &DataSetConfig::embodiment,
            "name in data.embodiments, name inside the binary, or a YAML file; empty: data.embodiment");
    v.field("episodes", &DataSetConfig::episodes, "episode indices that are used; empty: all");
    v.field("eval_episodes", &DataSetConfig::eval_episodes, "episode indices of this dataset held out for evaluation");
  }
};

/// How often each dataset of a mixture is drawn.
struct MixtureConfig {
  /// Read by data/sampling.
  std::string share = "weight";
  /// Above 0. Read by data/sampling.
  /// Share p becomes p^(1/T), then shares are normalised.
  double temperature = 1.0;

  template <class V>
  static void describe(V& v) {
    v.choice("share", &MixtureConfig::share,
             "weight: a dataset's share is its weight; samples: its weight times its number of samples",
             {"weight", "samples"});
    v.field("temperature", &MixtureConfig::temperature,
            "shares are raised to 1/temperature: above 1 small datasets come more often", "", kAboveZero, kUnbounded);
  }
};

/// What becomes of an instruction before the embodiment's template (docs/data.md#prompt).
struct LanguageConfig {
  /// 0 to 1. Read by data/language.
  double dropout = 0;
  /// Read by data/language.
  std::string default_instruction = "Perform the default behavior.";
  /// Read by data/language.
  bool always_default = false;
  /// Read by data/sample, data/language.
  bool formalize = false;
  /// Read by data/language.
  bool skip_placeholder = true;

  template <class V>
  static void describe(V& v) {
    v.field("dropout", &LanguageConfig::dropout, "probability that training shows the default instruction instead", "",
            0, 1);
    v.field("default_instruction", &LanguageConfig::default_instruction, "text shown for dropped instructions");
    v.field("always_default", &LanguageConfig::always_default, "show the default instruction always");
    v.field("formalize", &LanguageConfig::formalize, "lower-case and delete everything but word characters and blanks");
    v.field("skip_placeholder", &LanguageConfig::skip_placeholder,
            "with paraphrase_keys: do not draw empty texts and \"not provided\" while another key has a text");
  }
};

/// Which rows make a sample (docs/data.md#windows). multi_anchor: K chunks of F frames and H actions, S dataset steps
/// apart. fixed_window: num_frames consecutive frames, K * H actions and K * state_horizon states from the anchor on,
/// clamped to the episode.
struct WindowConfig {
  /// 1 to 64.
  /// Rules between these numbers and the model's are checked at load (configs/validate_data.cpp).
  std::int64_t chunks = 4;
  /// Frames, 1 to 4096.
  std::int64_t macro_stride = 24;
  /// Steps, 1 to 4096.
  std::int64_t action_horizon = 24;
  std::vector<std::int64_t> video_offsets = {0, 3, 6, 9, 12, 15, 18, 21};
  /// Frames, 1 to 4096. Read by data/sampling, data/index.
  std::int64_t num_frames = 33;
  /// Steps, 1 to 64. Read by data/sampling, data/index.
  std::int64_t state_horizon = 1;

  /// With what a robot sets otherwise.
  WindowConfig of_robot(const EmbodimentConfig& robot) const {
    WindowConfig window = *this;
    if (robot.macro_stride > 0) window.macro_stride = robot.macro_stride;
    if (!robot.video_offsets.empty()) window.video_offsets = robot.video_offsets;
    return window;
  }

  template <class V>
  static void describe(V& v) {
    v.field("chunks", &WindowConfig::chunks, "K, blocks per sample", "count", 1, 64);
    v.field("macro_stride", &WindowConfig::macro_stride, "S, dataset steps between block anchors", "frames", 1, 4096);
    v.field("action_horizon", &WindowConfig::action_horizon, "H, actions per block", "steps", 1, 4096);
    v.field("video_offsets", &WindowConfig::video_offsets,
            "O, frame offsets inside a block: strictly increasing, uniformly spaced");
    v.field("num_frames", &WindowConfig::num_frames, "fixed_window: consecutive frames of a sample", "frames", 1, 4096);
    v.field("state_horizon", &WindowConfig::state_horizon, "fixed_window: states per block", "steps", 1, 64);
  }
};

/// Crop, size and colour jitter of every view, in this order: decode, crop, antialiased resize, brightness, contrast,
/// saturation and hue in an order drawn by chance (docs/image-chain.md).
struct ImageConfig {
  /// Pixels, 2 to 4096.
  std::int64_t height = 176;
  /// Pixels, 2 to 4096.
  std::int64_t width = 320;
  /// 0.01 to 1. Read by image, workers/inference/policy, workers/encoder.
  double crop = 0.95;
  /// 0 to 1. Read by image, workers/inference/policy.
  double brightness = 0.3;
  /// 0 to 1. Read by image, workers/inference/policy.
  double contrast = 0.4;
  /// 0 to 1. Read by image, workers/inference/policy.
  double saturation = 0.5;
  /// 0 to 0.5. Read by image, workers/inference/policy.
  double hue = 0.08;

  /// True when training draws something anew for each sample: the place of a crop, or a jitter.
  bool is_random() const { return crop < 1 || brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }

  template <class V>
  static void describe(V& v) {
    v.field("height", &ImageConfig::height, "rows of one view after the resize", "pixels", 2, 4096);
    v.field("width", &ImageConfig::width, "columns of one view after the resize", "pixels", 2, 4096);
    v.field("crop", &ImageConfig::crop,
            "share of each side kept by the crop: random in training, centred in evaluation", "", 0.01, 1);
    v.field("brightness", &ImageConfig::brightness, "jitter range; 0 switches it off", "", 0, 1);
    v.field("contrast", &ImageConfig::contrast, "jitter range; 0 switches it off", "", 0, 1);
    v.field("saturation", &ImageConfig::saturation, "jitter range; 0 switches it off", "", 0, 1);
    v.field("hue", &ImageConfig::hue, "jitter range in turns; 0 switches it off", "", 0, 0.5);
  }
};

/// Colour jitter of the pictures that a policy imitates from (docs/rl.md#imitation-first). Apart from ImageConfig,
/// whose ranges are not 0 by default: imitation draws no jitter unless it is told to.
struct PictureJitterConfig {
  /// 0 to 1. Read by workers/learner/imitation.
  double brightness = 0;
  /// 0 to 1. Read by workers/learner/imitation.
  double contrast = 0;
  /// 0 to 1. Read by workers/learner/imitation.
  double saturation = 0;
  /// 0 to 0.5. Read by workers/learner/imitation.
  double hue = 0;

  bool is_on() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }

  template <class V>
  static void describe(V& v) {
    v.field("brightness", &PictureJitterConfig::brightness, "factors in [1 - range, 1 + range); 0: none", "", 0, 1);
    v.field("contrast", &PictureJitterConfig::contrast, "factors in [1 - range, 1 + range); 0: none", "", 0, 1);
    v.field("saturation", &PictureJitterConfig::saturation, "factors in [1 - range, 1 + range); 0: none", "", 0, 1);
    v.field("hue", &PictureJitterConfig::hue, "turns in [-range, range) of the hue circle; 0: none", "", 0, 0.5);
  }
};

/// How clips are decoded and what is kept of them.
struct DecoderConfig {
  /// Read by data/video, data/sample.
  std::string backend = "cpu";
  /// 1 to 65536. Read by data/sample.
  std::int64_t open_files = 128;
  /// GiB, 0 to 4096. Read by data/sample, workers/learner/imitation.
  double shared_frames_gib = 2;
  /// Read by data/sample, workers/decoder/loader.
  std::string clip_cache;
  /// GiB, above 0. Read by data/sample.
  double clip_cache_gib = 20;

  template <class V>
  static void describe(V& v) {
    v.choice("backend", &DecoderConfig::backend,
             "cpu: FFmpeg's software decoders, one thread each; nvdec: the GPU's decoder (H.264, HEVC)",
             {"cpu", "nvdec"});
    v.field("open_files", &DecoderConfig::open_files, "video files that each decoder keeps open", "count", 1, 65536);
    v.field("shared_frames_gib", &DecoderConfig::shared_frames_gib,
            "decoded frames that each decoder keeps: of neighbouring samples when data.locality_block is above 1; in "
            "imitation all pictures, where they fit",
            "GiB", 0, 4096);
    v.field("clip_cache", &DecoderConfig::clip_cache,
            "folder where decoded clips are kept, for datasets that fit; empty: none");
    v.field("clip_cache_gib", &DecoderConfig::clip_cache_gib, "size at which the oldest clips are deleted", "GiB",
            kAboveZero, kUnbounded);
  }
};

/// The dataset index on disk (docs/data.md).
struct IndexConfig {
  /// Read by data/index.
  std::string path;
  /// Read by data, data/index, data/health.
  std::string build = "auto";

  template <class V>
  static void describe(V& v) {
    v.field("path", &IndexConfig::path,
            "folder of dataset indexes; empty: the user's cache folder; beside: .troupe/index in the dataset, or the "
            "cache folder where that cannot be written");
    v.choice(
        "build", &IndexConfig::build,
        "auto: make or update it as needed; never: every process reads the files themselves; rebuild: make it anew",
        {"auto", "never", "rebuild"});
  }
};

/// Where frozen encoders run and what is kept of their output.
struct FeaturesConfig {
  /// Read by workers/encoder, placement, workers/learner.
  /// encoder: wants a pool of encoders in place of decoders (docs/features.md).
  std::string encode = "learner";
  /// Read by app, workers/encoder, workers/learner.
  std::string cache;
  /// Read by workers/encoder, app.
  /// all: only where training draws the same pixels each time, that is crop 1 and the four jitters 0.
  std::string keep = "all";

  template <class V>
  static void describe(V& v) {
    v.choice("encode", &FeaturesConfig::encode,
             "learner: in each learner rank; encoder: in a pool of encoder actors, which take the place of decoders "
             "and send latents and text features",
             {"learner", "encoder"});
    v.field(
        "cache", &FeaturesConfig::cache,
        "folder of latents and text features that `troupe encode` fills and training reads and adds to; empty: none");
    v.choice("keep", &FeaturesConfig::keep,
             "what the cache holds: all (text, image features and latents; wants data.image without random crop and "
             "jitter) or text",
             {"all", "text"});
  }
};

/// From files to training samples.
struct DataConfig {
  std::vector<DataSetConfig> sets;
  MixtureConfig mixture;
  /// Read by data/sampling, data/sample.
  std::string sampling = "multi_anchor";
  /// Read by data/sampling.
  std::string anchors = "all";
  /// Rows, 1 to 4096. Read by data/sampling.
  std::int64_t anchor_stride = 1;
  /// Samples, 1 to 4096.
  std::int64_t locality_block = 1;
  /// Samples, 1 to 2^20. Read by data/sampling, workers/encoder, data.
  std::int64_t shuffle_buffer = 256;
  /// A skipped sample keeps its position, with weight 0.
  ///
  std::string bad_sample = "fail";
  /// 0 to 1. Read by workers/controller.
  double max_bad_fraction = 0.001;
  std::vector<std::int64_t> eval_episodes;
  EmbodimentConfig embodiment;
  std::map<std::string, EmbodimentConfig> embodiments;
  WindowConfig window;
  ImageConfig image;
  PictureJitterConfig demonstration_jitter;
  LanguageConfig language;
  DecoderConfig decoder;
  IndexConfig index;
  FeaturesConfig features;
  /// 1 to 64. Read by app, placement.
  std::int64_t prefetch_batches = 2;
  /// Seconds, 1 to 3600.
  Seconds decode_deadline{60};

  template <class V>
  static void describe(V& v) {
    v.list("sets", &DataConfig::sets, "datasets; several make a mixture");
    v.group("mixture", &DataConfig::mixture, "shares of the datasets");
    v.choice("sampling", &DataConfig::sampling,
             "how windows are drawn from episodes: multi_anchor (GEAR's) or fixed_window (clamped, RLinf's older mode)",
             {"multi_anchor", "fixed_window"});
    v.choice("anchors", &DataConfig::anchors,
             "multi_anchor: all: every anchor with a full window, as the reference draws; windows: every distinct "
             "window once",
             {"all", "windows"});
    v.field("anchor_stride", &DataConfig::anchor_stride,
            "only rows that are a multiple of this in their episode are anchors", "rows", 1, 4096);
    v.field("locality_block", &DataConfig::locality_block,
            "neighbouring anchors that are drawn together, so that they share decoded frames; 1: full shuffle",
            "samples", 1, 4096);
    v.field("shuffle_buffer", &DataConfig::shuffle_buffer,
            "with locality_block above 1: samples among which blocks are mixed", "samples", 1, 1 << 20);
    v.choice("bad_sample", &DataConfig::bad_sample,
             "what a bad file or sample does: stop the job, or be counted, listed and left out", {"fail", "skip"});
    v.field("max_bad_fraction", &DataConfig::max_bad_fraction,
            "share of bad samples above which the job stops even with skip", "", 0, 1);
    v.field("eval_episodes", &DataConfig::eval_episodes,
            "episode indices held out for evaluation, of every dataset that does not name its own");
    v.group("embodiment", &DataConfig::embodiment,
            "columns, cameras, prompt; or the name of an embodiment inside the binary, or a YAML file");
    v.map("embodiments", &DataConfig::embodiments, "further embodiments by name, for data.sets[].embodiment");
    v.group("window", &DataConfig::window, "which frames and actions make a sample");
    v.group("image", &DataConfig::image, "per-view image chain");
    v.group("demonstration_jitter", &DataConfig::demonstration_jitter,
            "colour jitter of training pictures in imitation with policy.vision, drawn for each sample");
    v.group("language", &DataConfig::language, "instructions before the template");
    v.group("decoder", &DataConfig::decoder, "decoding of video");
    v.group("index", &DataConfig::index, "the dataset index on disk");
    v.group("features", &DataConfig::features, "frozen encoders: where they run, what is kept");
    v.field("prefetch_batches", &DataConfig::prefetch_batches, "micro-batches each learner rank keeps in flight",
            "count", 1, 64);
    v.field("decode_deadline_s", &DataConfig::decode_deadline, "time a decoder may hold one item before it is replaced",
            "seconds", 1, 3600);
  }
};

}  // namespace troupe::configs

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/bounds.h"

namespace troupe {

/// One LeRobot dataset.
struct DataSetConfig {
  std::string path;
  double weight = 1.0;

  template <class V> static void describe(V& v) {
    v.field("path", &DataSetConfig::path, "folder with meta/info.json (LeRobot v2.0 or v2.1); relative paths start at the working directory");
    v.field("weight", &DataSetConfig::weight, "share in a mixture", "", kAboveZero, kUnbounded);
  }
};

/// What one robot's dataset means: which columns and cameras are used, in which order, and how the prompt is worded.
struct EmbodimentConfig {
  std::string tag = "gr1_unified";
  std::int64_t id = 24;
  std::vector<std::string> views;
  std::vector<std::string> state_keys;
  std::vector<std::string> action_keys;
  std::vector<std::string> relative_action_keys;
  std::string normalization = "q99";
  std::string layout = "single";
  std::string prompt = "single_view_human";
  std::string language_key;

  template <class V> static void describe(V& v) {
    v.field("tag", &EmbodimentConfig::tag, "embodiment tag as GEAR writes it");
    v.field("id", &EmbodimentConfig::id, "embodiment id put into the batch", "", 0, 65535);
    v.field("views", &EmbodimentConfig::views, "camera keys in canvas order: modality.json short names or feature names");
    v.field("state_keys", &EmbodimentConfig::state_keys, "state modality keys, concatenated in order; empty: the whole observation.state");
    v.field("action_keys", &EmbodimentConfig::action_keys, "action modality keys, concatenated in order; empty: the whole action");
    v.field("relative_action_keys", &EmbodimentConfig::relative_action_keys, "action keys made relative to the state of the same name at each block's first step");
    v.choice("normalization", &EmbodimentConfig::normalization, "mode for every state and action key", {"q99", "min_max", "mean_std", "scale"});
    v.choice("layout", &EmbodimentConfig::layout, "how views share the canvas (data.md 4.7)", {"single", "horizontal", "droid", "grid2x2"});
    v.choice("prompt", &EmbodimentConfig::prompt, "how the instruction is wrapped: none, single_view_human, or the template of the embodiment of that name (dreamzero-model.md 4.2)",
             {"none", "single_view_human", "oxe_droid", "agibot", "xdof", "yam", "gr1_unified", "mecka_hands", "libero_sim", "franka_pnp"});
    v.field("language_key", &EmbodimentConfig::language_key, "annotation key of modality.json; empty: the first one, else task_index");
  }
};

/// The multi_anchor window (data.md 3.2): K chunks of F frames and H actions, S dataset steps apart.
struct WindowConfig {
  std::int64_t chunks = 4;
  std::int64_t macro_stride = 24;
  std::int64_t action_horizon = 24;
  std::vector<std::int64_t> video_offsets = {0, 3, 6, 9, 12, 15, 18, 21};

  template <class V> static void describe(V& v) {
    v.field("chunks", &WindowConfig::chunks, "K, blocks per sample", "count", 1, 64);
    v.field("macro_stride", &WindowConfig::macro_stride, "S, dataset steps between block anchors", "frames", 1, 4096);
    v.field("action_horizon", &WindowConfig::action_horizon, "H, actions per block", "steps", 1, 4096);
    v.field("video_offsets", &WindowConfig::video_offsets, "O, frame offsets inside a block: strictly increasing, uniformly spaced");
  }
};

/// Crop, size and colour jitter of every view (data.md 4.2).
struct ImageConfig {
  std::int64_t height = 176;
  std::int64_t width = 320;
  double crop = 0.95;
  double brightness = 0.3;
  double contrast = 0.4;
  double saturation = 0.5;
  double hue = 0.08;

  template <class V> static void describe(V& v) {
    v.field("height", &ImageConfig::height, "rows of one view after the resize", "pixels", 2, 4096);
    v.field("width", &ImageConfig::width, "columns of one view after the resize", "pixels", 2, 4096);
    v.field("crop", &ImageConfig::crop, "share of each side kept by the crop: random in training, centred in evaluation", "", 0.01, 1);
    v.field("brightness", &ImageConfig::brightness, "jitter range; 0 switches it off", "", 0, 1);
    v.field("contrast", &ImageConfig::contrast, "jitter range; 0 switches it off", "", 0, 1);
    v.field("saturation", &ImageConfig::saturation, "jitter range; 0 switches it off", "", 0, 1);
    v.field("hue", &ImageConfig::hue, "jitter range in turns; 0 switches it off", "", 0, 0.5);
  }
};

/// From files to training samples.
struct DataConfig {
  std::vector<DataSetConfig> sets;
  std::string sampling = "multi_anchor";
  std::string bad_sample = "fail";
  double max_bad_fraction = 0.001;
  std::vector<std::int64_t> eval_episodes;
  EmbodimentConfig embodiment;
  WindowConfig window;
  ImageConfig image;
  std::int64_t prefetch_batches = 2;
  double decode_deadline_s = 60;

  template <class V> static void describe(V& v) {
    v.list("sets", &DataConfig::sets, "datasets; exactly one");
    v.choice("sampling", &DataConfig::sampling, "how windows are drawn from episodes", {"multi_anchor"});
    v.choice("bad_sample", &DataConfig::bad_sample, "what a bad file or sample does: stop the job, or be counted, listed and left out", {"fail", "skip"});
    v.field("max_bad_fraction", &DataConfig::max_bad_fraction, "share of bad samples above which the job stops even with skip", "", 0, 1);
    v.field("eval_episodes", &DataConfig::eval_episodes, "episode indices held out for evaluation");
    v.group("embodiment", &DataConfig::embodiment, "columns, cameras, prompt");
    v.group("window", &DataConfig::window, "which frames and actions make a sample");
    v.group("image", &DataConfig::image, "per-view image chain");
    v.field("prefetch_batches", &DataConfig::prefetch_batches, "micro-batches each learner rank keeps in flight", "count", 1, 64);
    v.field("decode_deadline_s", &DataConfig::decode_deadline_s, "time a decoder may hold one item before it is replaced", "seconds", 1, 3600);
  }
};

}  // namespace troupe

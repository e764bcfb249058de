#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "configs/bounds.h"

namespace troupe::configs {

/// What one robot's data mean: which columns and cameras are used, in which order, at which rate, and how the prompt is
/// worded. One YAML file each: configs/embodiments/NAME.yaml inside the binary, or a file of the user's.
struct EmbodimentConfig {
  /// Key of the statistics in metadata.json; datasets of one tag must have the same keys. `id` goes into every
  /// sample, 0 to 65535, and picks the embodiment's rows of the model's state and action layers.
  std::string tag = "gr1_unified";
  std::int64_t id = 24;
  /// One for layout single, two for horizontal, three for droid, two to four for grid2x2.
  std::vector<std::string> views;
  /// Read when a dataset is opened (data/lerobot); an unknown feature is an error there.
  std::map<std::string, std::string> cameras;
  /// Order of the columns in the vectors that the network gets; no key twice. Slices are half open, columns from 0.
  std::vector<std::string> state_keys;
  std::vector<std::string> action_keys;
  std::map<std::string, std::string> slices;
  /// Each must be in action_keys and in state_keys too.
  std::vector<std::string> relative_action_keys;
  /// Formulas: docs/data.md#state-and-action.
  std::string normalization = "q99";
  /// Places of the views on the canvas: docs/video.md#3-the-image-chain.
  std::string layout = "single";
  /// Templates, word by word: docs/text.md#templates.
  std::string prompt = "single_view_human";
  std::string language_key;
  /// Needs language_key; drawn by (seed, position).
  std::vector<std::string> paraphrase_keys;
  /// Hz; a dataset of another rate is refused. macro_stride and video_offsets are in frames of the dataset.
  double fps = 0;
  std::int64_t macro_stride = 0;
  std::vector<std::int64_t> video_offsets;

  template <class V>
  static void describe(V& v) {
    v.from_file();
    v.field("tag", &EmbodimentConfig::tag, "embodiment tag as GEAR writes it");
    v.field("id", &EmbodimentConfig::id, "embodiment id put into the batch", "", 0, 65535);
    v.field("views", &EmbodimentConfig::views,
            "cameras in canvas order: names of `cameras`, modality.json short names, or feature names");
    v.map("cameras", &EmbodimentConfig::cameras,
          "short name -> feature, such as wrist: observation.images.wrist; beside or in place of modality.json");
    v.field("state_keys", &EmbodimentConfig::state_keys,
            "state keys, concatenated in order; empty: the whole observation.state");
    v.field("action_keys", &EmbodimentConfig::action_keys,
            "action keys, concatenated in order; empty: the whole action");
    v.map("slices", &EmbodimentConfig::slices,
          "state.KEY or action.KEY -> column[start:end], such as action.gripper: \"action[6:7]\"; beside or in place "
          "of modality.json");
    v.field("relative_action_keys", &EmbodimentConfig::relative_action_keys,
            "action keys made relative to the state of the same name at each block's first step");
    v.choice("normalization", &EmbodimentConfig::normalization, "mode for every state and action key",
             {"q99", "min_max", "mean_std", "scale"});
    v.choice("layout", &EmbodimentConfig::layout, "how views share the canvas (docs/image-chain.md)",
             {"single", "horizontal", "droid", "grid2x2"});
    v.choice("prompt", &EmbodimentConfig::prompt,
             "how the instruction is wrapped: none, single_view_human, or the template of the embodiment of that name "
             "(docs/text.md)",
             {"none", "single_view_human", "oxe_droid", "agibot", "xdof", "yam", "gr1_unified", "mecka_hands",
              "libero_sim", "franka_pnp"});
    v.field("language_key", &EmbodimentConfig::language_key,
            "annotation key of modality.json whose label splits episodes; empty: the first one, else task_index");
    v.field("paraphrase_keys", &EmbodimentConfig::paraphrase_keys,
            "further annotation keys: training draws one text of all keys per sample, evaluation takes language_key's");
    v.field("fps", &EmbodimentConfig::fps, "rate the dataset must have, within 1%; 0: any", "Hz", 0, 1000);
    v.field("macro_stride", &EmbodimentConfig::macro_stride, "S of this robot; 0: data.window.macro_stride", "frames",
            0, 4096);
    v.field("video_offsets", &EmbodimentConfig::video_offsets,
            "O of this robot, as many as data.window.video_offsets; empty: those");
  }
};

}  // namespace troupe::configs

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/bounds.h"

namespace troupe {

/// What one robot's data mean: which columns and cameras are used, in which order, at which rate, and how the prompt is
/// worded. One YAML file each: configs/embodiments/NAME.yaml inside the binary, or a file of the user's.
struct EmbodimentConfig {
  std::string tag = "gr1_unified";
  std::int64_t id = 24;
  std::vector<std::string> views;
  std::map<std::string, std::string> cameras;
  std::vector<std::string> state_keys;
  std::vector<std::string> action_keys;
  std::map<std::string, std::string> slices;
  std::vector<std::string> relative_action_keys;
  std::string normalization = "q99";
  std::string layout = "single";
  std::string prompt = "single_view_human";
  std::string language_key;
  std::vector<std::string> paraphrase_keys;
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
    v.choice("layout", &EmbodimentConfig::layout, "how views share the canvas (data.md 4.7)",
             {"single", "horizontal", "droid", "grid2x2"});
    v.choice("prompt", &EmbodimentConfig::prompt,
             "how the instruction is wrapped: none, single_view_human, or the template of the embodiment of that name "
             "(dreamzero-model.md 4.2)",
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

}  // namespace troupe

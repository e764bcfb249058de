#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "configs/validate.h"

namespace troupe::configs {

namespace {

bool is_unique(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

bool holds(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void validate_layout(const EmbodimentConfig& e, const std::string& prefix, Rules& rules) {
  const std::size_t views = e.views.size();
  const bool fits = e.layout == "single"       ? views == 1
                    : e.layout == "horizontal" ? views == 2
                    : e.layout == "droid"      ? views == 3
                                               : views >= 2 && views <= 4;
  const char* wants = e.layout == "single"       ? "one view"
                      : e.layout == "horizontal" ? "two views"
                      : e.layout == "droid"      ? "three views"
                                                 : "two to four views";
  rules.require(fits, prefix + "views", fmt::format("{} named; layout {} shows {}", views, e.layout, wants),
                {(prefix + "layout").c_str()});
}

void validate_slices(const EmbodimentConfig& e, const std::string& prefix, Rules& rules) {
  static const std::regex kSlice(R"(([^\[\]]+)\[([0-9]{1,6}):([0-9]{1,6})\])");
  for (const auto& [key, slice] : e.slices) {
    const std::string path = prefix + "slices." + key;
    const bool named = (key.starts_with("state.") && key.size() > 6) || (key.starts_with("action.") && key.size() > 7);
    rules.require(named, path, "wants a key state.NAME or action.NAME");
    std::smatch parts;
    const bool fits = std::regex_match(slice, parts, kSlice) && std::stol(parts[2]) < std::stol(parts[3]);
    rules.require(fits, path, fmt::format("'{}' is no slice; wants column[start:end], such as action[6:7]", slice));
  }
}

void validate_episodes(const std::vector<std::int64_t>& episodes, const std::string& path, Rules& rules) {
  const bool natural = std::all_of(episodes.begin(), episodes.end(), [](std::int64_t e) { return e >= 0; });
  rules.require(natural && std::set<std::int64_t>(episodes.begin(), episodes.end()).size() == episodes.size(), path,
                "wants episode indices from 0, each once");
}

bool is_uniform(const std::vector<std::int64_t>& offsets) {
  bool uniform = !offsets.empty() && offsets.front() >= 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    uniform = uniform && offsets[i] > offsets[i - 1] && offsets[i] - offsets[i - 1] == offsets[1] - offsets[0];
  }
  return uniform;
}

constexpr const char* kUniform = "wants frame offsets from 0 up, strictly increasing and equally spaced";

}  // namespace

void validate_sets(const DataConfig& data, Rules& rules) {
  rules.require(!data.sets.empty(), "data.sets", "names no dataset; wants at least one, such as data.sets=data/droid");
  for (std::size_t i = 0; i < data.sets.size(); ++i) {
    const DataSetConfig& set = data.sets[i];
    const std::string path = fmt::format("data.sets[{}].", i);
    rules.require(!set.path.empty(), path + "path",
                  "is empty; name the dataset's folder, or owner/name of a cached one");
    validate_episodes(set.episodes, path + "episodes", rules);
    validate_episodes(set.eval_episodes, path + "eval_episodes", rules);
  }
}

void validate_embodiment(const EmbodimentConfig& e, const std::string& prefix, Rules& rules) {
  validate_layout(e, prefix, rules);
  const auto unique = [&](const std::vector<std::string>& names, const char* key) {
    rules.require(is_unique(names), prefix + key, "names a key twice");
    rules.require(!holds(names, ""), prefix + key, "holds an empty name");
  };
  unique(e.views, "views");
  unique(e.state_keys, "state_keys");
  unique(e.action_keys, "action_keys");
  unique(e.relative_action_keys, "relative_action_keys");
  unique(e.paraphrase_keys, "paraphrase_keys");
  const std::string actions = prefix + "action_keys", states = prefix + "state_keys";
  for (const std::string& key : e.relative_action_keys) {
    rules.require(holds(e.action_keys, key) && holds(e.state_keys, key), prefix + "relative_action_keys",
                  fmt::format("'{}' must be in action_keys and, as the value it is relative to, in state_keys", key),
                  {actions.c_str(), states.c_str()});
  }
  rules.require(e.paraphrase_keys.empty() || !e.language_key.empty(), prefix + "paraphrase_keys",
                "needs language_key, the annotation whose labels split episodes");
  rules.require(e.video_offsets.empty() || is_uniform(e.video_offsets), prefix + "video_offsets", kUniform);
  validate_slices(e, prefix, rules);
}

void validate_data(const DataConfig& data, Rules& rules) {
  validate_sets(data, rules);
  validate_episodes(data.eval_episodes, "data.eval_episodes", rules);
  validate_embodiment(data.embodiment, "data.embodiment.", rules);
  for (const auto& [name, embodiment] : data.embodiments) {
    validate_embodiment(embodiment, fmt::format("data.embodiments.{}.", name), rules);
  }
  rules.require(data.locality_block == 1 || data.shuffle_buffer % data.locality_block == 0, "data.shuffle_buffer",
                fmt::format("{} is not a multiple of data.locality_block {}; blocks are mixed whole",
                            data.shuffle_buffer, data.locality_block),
                {"data.locality_block"});
  rules.require(data.anchors == "all" || data.sampling == "multi_anchor", "data.anchors",
                "windows is a rule of multi_anchor; fixed_window draws every row", {"data.sampling"});
}

void validate_window(const DataConfig& data, const ModelConfig& model, Rules& rules) {
  const WindowConfig& window = data.window;
  // T frames are 1 + (T - 1) / stride_t latent frames; blocks of latent_frames_per_block must number K
  const std::int64_t wanted = model.codec.stride_t * model.latent_frames_per_block;
  if (data.sampling == "fixed_window") {
    rules.require(
        window.num_frames == window.chunks * wanted + 1, "data.window.num_frames",
        fmt::format(
            "{} frames; {} chunks need chunks x model.codec.stride_t {} x model.latent_frames_per_block {} + 1 = {}",
            window.num_frames, window.chunks, model.codec.stride_t, model.latent_frames_per_block,
            window.chunks * wanted + 1),
        {"data.window.chunks", "model.codec.stride_t", "model.latent_frames_per_block"});
    rules.require(window.state_horizon == model.states_per_block, "data.window.state_horizon",
                  fmt::format("{} states a block; the model reads model.states_per_block {}", window.state_horizon,
                              model.states_per_block),
                  {"model.states_per_block"});
  } else {
    const auto& offsets = window.video_offsets;
    const char* offsets_path = "data.window.video_offsets";
    rules.require(is_uniform(offsets), offsets_path, kUniform);
    const auto frames = static_cast<std::int64_t>(offsets.size());
    rules.require(
        frames == wanted, offsets_path,
        fmt::format(
            "{} frames per block; {} chunks need model.codec.stride_t {} x model.latent_frames_per_block {} = {} each",
            frames, window.chunks, model.codec.stride_t, model.latent_frames_per_block, wanted),
        {"model.codec.stride_t", "model.latent_frames_per_block"});
  }
  rules.require(window.action_horizon % model.latent_frames_per_block == 0, "data.window.action_horizon",
                fmt::format("{} is not a multiple of model.latent_frames_per_block {}", window.action_horizon,
                            model.latent_frames_per_block),
                {"model.latent_frames_per_block"});
  const auto own_offsets = [&](const EmbodimentConfig& e, const std::string& path) {
    rules.require(e.video_offsets.empty() || e.video_offsets.size() == window.video_offsets.size(), path,
                  fmt::format("{} offsets; data.window.video_offsets has {}", e.video_offsets.size(),
                              window.video_offsets.size()),
                  {"data.window.video_offsets"});
  };
  own_offsets(data.embodiment, "data.embodiment.video_offsets");
  for (const auto& [name, e] : data.embodiments) own_offsets(e, fmt::format("data.embodiments.{}.video_offsets", name));
}

}  // namespace troupe::configs

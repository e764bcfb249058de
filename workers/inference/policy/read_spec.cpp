#include "workers/inference/policy/read_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hugging_face.h"
#include "base/log.h"
#include "data/lerobot/file_checks.h"
#include "data/sampling/dataset_spec.h"
#include "image/canvas.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/policy/embodiment_table.h"
#include "workers/inference/policy/gear_experiment.h"
#include "workers/inference/policy/metadata.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// norm_stats.json of the folder, or of the only folder below assets/; empty: none.
Result<std::string> find_norm_stats(const std::string& folder) {
  if (exists(folder + "/norm_stats.json")) return folder + "/norm_stats.json";
  std::vector<std::string> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder + "/assets", code)) {
    const std::string path = entry.path().string() + "/norm_stats.json";
    if (exists(path)) found.push_back(path);
  }
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    return Error{
        Errc::invalid_argument,
        fmt::format("{}/assets holds several norm_stats.json ({}, {}, ...); keep one, or put it beside the weights",
                    folder, found[0], found[1])};
  }
  return found.empty() ? std::string() : found.front();
}

/// What decides which keys are used, in which order and how.
struct KeyChoice {
  std::vector<std::string> views{}, state{}, action{}, relative{};
  std::map<std::string, NormalizationMode> state_modes{}, action_modes{};
  NormalizationMode mode = NormalizationMode::q99;  ///< of keys without one of their own
};

Result<std::vector<PolicyKey>> pick_keys(const std::vector<MetadataKey>& have, const std::vector<std::string>& names,
                                         const std::map<std::string, NormalizationMode>& modes,
                                         NormalizationMode otherwise, const std::vector<std::string>& relative,
                                         const std::string& where) {
  std::vector<PolicyKey> keys;
  for (const std::string& name : names) {
    const MetadataKey* key = find_key(have, name);
    if (key == nullptr) {
      std::string known;
      for (const MetadataKey& k : have) known += (known.empty() ? "" : ", ") + k.name;
      return Error{Errc::invalid_argument, fmt::format("{} has no statistics of '{}'; it has {}", where, name, known)};
    }
    const auto mode = modes.find(name);
    keys.push_back({.name = name,
                    .width = key->width,
                    .mode = mode == modes.end() ? otherwise : mode->second,
                    .relative = holds(relative, name),
                    .statistics = key->statistics});
  }
  return keys;
}

std::vector<std::string> all_names(const std::vector<MetadataKey>& keys) {
  std::vector<std::string> names;
  for (const MetadataKey& key : keys) names.push_back(key.name);
  return names;
}

Result<void> take_keys(const std::string& folder, const std::string& metadata_path, EmbodimentMetadata metadata,
                       KeyChoice choice, PolicySpec& spec) {
  if (choice.state.empty()) choice.state = all_names(metadata.state);
  if (choice.action.empty()) choice.action = all_names(metadata.action);
  if (choice.views.empty()) choice.views = metadata.views;
  TROUPE_ASSIGN(const std::string norm_stats, find_norm_stats(folder));
  if (!norm_stats.empty()) {
    TROUPE_ASSIGN(const std::string text, read_text_file(norm_stats));
    TROUPE_ASSIGN(const NormStats stats, parse_norm_stats(text, norm_stats));
    const auto known = [](const std::vector<MetadataKey>& keys, const std::vector<std::string>& names) {
      return std::all_of(names.begin(), names.end(), [&](const auto& name) { return find_key(keys, name) != nullptr; });
    };
    if (known(metadata.state, choice.state) && known(metadata.action, choice.action)) {
      TROUPE_TRY(use_norm_stats(stats, choice.state, choice.action, norm_stats, metadata));
      log::info("{}: statistics of state and action are those of {}", folder, norm_stats);
    }
  }
  const std::string where = fmt::format("{}: embodiment '{}'", metadata_path, metadata.tag);
  TROUPE_ASSIGN(spec.state,
                pick_keys(metadata.state, choice.state, choice.state_modes, choice.mode, {}, where + ": state"));
  TROUPE_ASSIGN(spec.action, pick_keys(metadata.action, choice.action, choice.action_modes, choice.mode,
                                       choice.relative, where + ": action"));
  for (const std::string& name : choice.relative) {
    if (holds(choice.action, name)) continue;
    return Error{Errc::invalid_argument,
                 fmt::format("{}: the relative key '{}' is not among its action keys", where, name)};
  }
  // A configuration has one word for all keys: the first action key's. Errors in normalised units are measured with it.
  if (!spec.action.empty()) spec.embodiment.normalization = enum_name(spec.action.front().mode);
  spec.embodiment.tag = metadata.tag;
  spec.embodiment.views = choice.views;
  spec.embodiment.state_keys = choice.state;
  spec.embodiment.action_keys = choice.action;
  spec.embodiment.relative_action_keys = choice.relative;
  return {};
}

// ---- a Troupe checkpoint ------------------------------------------------------------------------------------------

/// The robot of a job that is asked for: the first entry of data.sets whose embodiment has this tag; without a tag, or
/// where none has it, the first entry.
Result<DatasetSpec> robot_of(const JobConfig& job, const std::string& tag) {
  for (std::size_t i = 0; i < job.data.sets.size() && !tag.empty(); ++i) {
    TROUPE_ASSIGN(DatasetSpec spec, dataset_spec(job.data, job.model, i));
    if (spec.embodiment.tag == tag) return spec;
  }
  return dataset_spec(job.data, job.model, 0);
}

Result<PolicySpec> spec_of_job(const JobConfig& job, const std::string& folder, const PolicyOptions& options) {
  PolicySpec spec;
  spec.name = folder;
  spec.model = job.model;
  TROUPE_ASSIGN(const DatasetSpec robot, robot_of(job, options.embodiment));
  const EmbodimentConfig& embodiment = robot.embodiment;
  spec.window = robot.window;
  spec.image = job.data.image;
  spec.embodiment = embodiment;
  spec.state_self_only = learns_dreamzero(job);
  spec.lora_scale = job.model.lora.alpha / static_cast<double>(job.model.lora.rank);
  if (!options.tokenizer.empty()) spec.model.text_encoder.tokenizer = options.tokenizer;

  const std::string path = folder + "/metadata.json";
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  const std::string tag = options.embodiment.empty() ? embodiment.tag : options.embodiment;
  TROUPE_ASSIGN(EmbodimentMetadata metadata, parse_metadata(text, path, tag));
  KeyChoice choice{.views = embodiment.views,
                   .state = embodiment.state_keys,
                   .action = embodiment.action_keys,
                   .relative = embodiment.relative_action_keys};
  TROUPE_ASSIGN(choice.mode, normalization_mode(embodiment.normalization));
  TROUPE_TRY(take_keys(folder, path, std::move(metadata), std::move(choice), spec));
  // Names of whole columns are the dataset's to find again: an empty list says so there too.
  spec.embodiment.state_keys = embodiment.state_keys;
  spec.embodiment.action_keys = embodiment.action_keys;
  return spec;
}

Result<PolicySpec> read_troupe_spec(const std::string& folder, const PolicyOptions& options) {
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(folder));
  TROUPE_ASSIGN(const JobConfig job, job_of(manifest, folder));
  return spec_of_job(job, folder, options);
}

// ---- a DreamZero folder -------------------------------------------------------------------------------------------

/// Frame offsets inside a block where nothing says them: F frames spread evenly over its actions.
std::vector<std::int64_t> spread_offsets(std::int64_t frames, std::int64_t actions) {
  std::vector<std::int64_t> offsets;
  const std::int64_t stride = std::max<std::int64_t>(1, actions / std::max<std::int64_t>(1, frames));
  for (std::int64_t i = 0; i < frames; ++i) offsets.push_back(i * stride);
  return offsets;
}

Result<std::string> find_tokenizer(const std::string& folder, const GearConfig& config, const PolicyOptions& options) {
  if (!options.tokenizer.empty()) return options.tokenizer;
  for (const char* name :
       {"spiece.model", "tokenizer/spiece.model", "umt5-xxl/spiece.model", "google/umt5-xxl/spiece.model"}) {
    const std::string path = folder + "/" + name;
    if (exists(path)) return path;
  }
  if (config.byte_tokenizer) return std::string();
  return Error{
      Errc::not_found,
      fmt::format("{} holds no tokenizer (spiece.model, tokenizer/spiece.model); that of google/umt5-xxl goes with it: "
                  "--tokenizer google/umt5-xxl\n{}",
                  folder, download_hint("google/umt5-xxl/spiece.model"))};
}

Result<KeyChoice> choose_keys(const GearExperiment& experiment, const EmbodimentMetadata& metadata) {
  KeyChoice choice{.views = experiment.views,
                   .state = experiment.state_keys,
                   .action = experiment.action_keys,
                   .relative = experiment.relative_action_keys,
                   .state_modes = experiment.state_modes,
                   .action_modes = experiment.action_modes};
  const EmbodimentDefaults* defaults = find_embodiment(metadata.tag);
  const auto every = [](const std::vector<std::string>& names, const auto& found) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return found(name); });
  };
  if (defaults != nullptr) {
    // A metadata file may list more than the model uses, so the table's order counts where the file has all of it.
    const auto is_view = [&](const std::string& name) { return metadata.views.empty() || holds(metadata.views, name); };
    if (choice.views.empty() && every(defaults->views, is_view)) {
      choice.views = defaults->views;
    }
    if (choice.state.empty() &&
        every(defaults->state_keys, [&](const auto& n) { return find_key(metadata.state, n) != nullptr; })) {
      choice.state = defaults->state_keys;
    }
    if (choice.action.empty() &&
        every(defaults->action_keys, [&](const auto& n) { return find_key(metadata.action, n) != nullptr; })) {
      choice.action = defaults->action_keys;
    }
  }
  if (experiment.relative.has_value() && !*experiment.relative) choice.relative.clear();
  if (experiment.relative.value_or(false) && choice.relative.empty()) {
    // Training's default: every action key whose name lacks "gripper".
    for (const std::string& name : choice.action.empty() ? all_names(metadata.action) : choice.action) {
      if (name.find("gripper") == std::string::npos) choice.relative.push_back(name);
    }
  }
  if (!experiment.relative.has_value() && choice.relative.empty() && defaults != nullptr) {
    for (const std::string& name : defaults->relative_action_keys) {
      if (holds(choice.action, name)) choice.relative.push_back(name);
    }
  }
  return choice;
}

Result<EmbodimentMetadata> gear_metadata(const std::string& folder, const PolicyOptions& options) {
  const std::string path = folder + "/experiment_cfg/metadata.json";
  if (exists(path)) {
    TROUPE_ASSIGN(const std::string text, read_text_file(path));
    return parse_metadata(text, path, options.embodiment);
  }
  TROUPE_ASSIGN(const std::string norm_stats, find_norm_stats(folder));
  if (norm_stats.empty() || options.embodiment.empty()) {
    return Error{Errc::not_found,
                 fmt::format("{} does not exist; without it actions cannot be de-normalised (norm_stats.json and "
                             "--embodiment would do)",
                             path)};
  }
  TROUPE_ASSIGN(const std::string text, read_text_file(norm_stats));
  TROUPE_ASSIGN(const NormStats stats, parse_norm_stats(text, norm_stats));
  // One key for each whole vector, as OpenPI has it.
  const auto width = [](const FeatureStatistics& s) {
    return static_cast<std::int64_t>(std::max(s.mean.size(), s.q01.size()));
  };
  return EmbodimentMetadata{.tag = options.embodiment,
                            .state = {{"state", width(stats.state), {stats.state}}},
                            .action = {{"actions", width(stats.actions), {stats.actions}}}};
}

void take_images(const GearExperiment& experiment, PolicySpec& spec) {
  const EmbodimentDefaults* defaults = find_embodiment(spec.embodiment.tag);
  spec.image.height = experiment.image_height.value_or(defaults != nullptr ? defaults->image_height : 176);
  spec.image.width = experiment.image_width.value_or(defaults != nullptr ? defaults->image_width : 320);
  // The official Wan2.2 data files resize views to 160 rows.
  const bool wan22 = spec.model.codec.channels == 48 && spec.image.height == 176;
  if (!experiment.image_height && wan22) spec.image.height = 160;
  if (experiment.crop) spec.image.crop = *experiment.crop;
}

Result<void> take_words(const GearConfig& config, const GearExperiment& experiment, const std::string& where,
                        PolicySpec& spec) {
  EmbodimentConfig& e = spec.embodiment;
  const EmbodimentDefaults* defaults = find_embodiment(e.tag);
  e.layout = config.layout.empty() ? canvas_layout(e.tag, e.views.size()) : config.layout;
  e.prompt = config.prompt.empty() && defaults != nullptr ? defaults->tag : config.prompt;
  e.language_key = config.language_key.empty() ? experiment.language_key : config.language_key;
  if (defaults != nullptr) e.id = defaults->id;
  if (!e.prompt.empty()) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{}: nothing says how prompts of embodiment '{}' are worded; known are {}", where, e.tag,
                           known_embodiments())};
}

Result<PolicySpec> read_gear_spec(const std::string& folder, const PolicyOptions& options) {
  const std::string config_path = folder + "/config.json", conf_path = folder + "/experiment_cfg/conf.yaml";
  TROUPE_ASSIGN(const std::string text, read_text_file(config_path));
  TROUPE_ASSIGN(const GearConfig config, parse_gear_config(text, config_path));
  PolicySpec spec;
  spec.name = folder;
  spec.model = config.model;
  spec.lora_scale = config.lora_scale;
  spec.decouple_noise = config.decouple_inference_noise;
  spec.video_final_noise = config.video_inference_final_noise;
  spec.open_encoder_hidden = config.open_encoder_hidden;
  spec.open_action_dim = config.open_action_dim;
  spec.open_state_dim = config.open_state_dim;
  TROUPE_ASSIGN(spec.model.text_encoder.tokenizer, find_tokenizer(folder, config, options));

  TROUPE_ASSIGN(EmbodimentMetadata metadata, gear_metadata(folder, options));
  GearExperiment experiment;
  if (exists(conf_path)) {
    TROUPE_ASSIGN(const std::string conf, read_text_file(conf_path));
    TROUPE_ASSIGN(experiment, parse_gear_experiment(conf, conf_path, metadata.tag));
  }
  TROUPE_ASSIGN(KeyChoice choice, choose_keys(experiment, metadata));
  TROUPE_TRY(take_keys(folder, folder + "/experiment_cfg/metadata.json", std::move(metadata), std::move(choice), spec));
  TROUPE_TRY(take_words(config, experiment, config_path, spec));
  take_images(experiment, spec);
  // An empty list means the whole column to a dataset too.
  if (config.whole_state) spec.embodiment.state_keys.clear();
  if (config.whole_action) spec.embodiment.action_keys.clear();

  const std::int64_t frames = spec.frames_per_block();
  spec.window = {.chunks = config.max_chunk_size,
                 .macro_stride = config.macro_stride > 0 ? config.macro_stride : config.actions_per_block,
                 .action_horizon = config.actions_per_block,
                 .video_offsets = config.video_offsets.empty() ? spread_offsets(frames, config.actions_per_block)
                                                               : config.video_offsets};
  if (spec.model.target_height == 0) {
    TROUPE_ASSIGN(const CanvasLayout canvas,
                  CanvasLayout::make(spec.embodiment.layout, static_cast<std::int64_t>(spec.embodiment.views.size()),
                                     spec.image.height, spec.image.width));
    spec.model.target_height = canvas.height;
    spec.model.target_width = canvas.width;
  }
  return spec;
}

}  // namespace

Result<CheckpointKind> checkpoint_kind(const std::string& folder) {
  if (exists(folder + "/manifest.json")) return CheckpointKind::troupe;
  if (exists(folder + "/config.json")) return CheckpointKind::gear;
  return Error{
      Errc::not_found,
      fmt::format("{} is no checkpoint: it has neither manifest.json (Troupe) nor config.json (DreamZero)", folder)};
}

Result<PolicySpec> read_policy_spec(const std::string& folder, const PolicyOptions& options) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(folder));
  TROUPE_ASSIGN(PolicySpec spec,
                kind == CheckpointKind::troupe ? read_troupe_spec(folder, options) : read_gear_spec(folder, options));
  TROUPE_TRY(check_policy_spec(spec, folder));
  return spec;
}

Result<PolicySpec> policy_spec_of(const JobConfig& job, const std::string& folder) {
  TROUPE_ASSIGN(PolicySpec spec, spec_of_job(job, folder, {}));
  TROUPE_TRY(check_policy_spec(spec, folder));
  return spec;
}

Result<std::vector<CheckpointAttachment>> read_statistics_files(const std::string& folder) {
  std::vector<CheckpointAttachment> files;
  TROUPE_ASSIGN(std::string metadata, read_text_file(folder + "/metadata.json"));
  files.push_back({.name = "metadata.json", .bytes = std::move(metadata)});
  TROUPE_ASSIGN(const std::string norm_stats, find_norm_stats(folder));
  if (norm_stats.empty()) return files;
  TROUPE_ASSIGN(std::string text, read_text_file(norm_stats));
  files.push_back({.name = "norm_stats.json", .bytes = std::move(text)});
  return files;
}

GearConfig to_gear_config(const PolicySpec& spec) {
  GearConfig config;
  config.model = spec.model;
  config.max_chunk_size = spec.window.chunks;
  config.actions_per_block = spec.window.action_horizon;
  config.decouple_inference_noise = spec.decouple_noise;
  config.video_inference_final_noise = spec.video_final_noise;
  config.layout = spec.embodiment.layout;
  config.prompt = spec.embodiment.prompt;
  config.language_key = spec.embodiment.language_key;
  config.macro_stride = spec.window.macro_stride;
  config.video_offsets = spec.window.video_offsets;
  config.byte_tokenizer = spec.model.text_encoder.tokenizer.empty();
  config.whole_state = spec.embodiment.state_keys.empty();
  config.whole_action = spec.embodiment.action_keys.empty();
  return config;
}

}  // namespace troupe::workers

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// What experiment_cfg/conf.yaml of a DreamZero folder says about one embodiment: the resolved training configuration's
/// modality_configs, transforms and relative_action keys. Parts that it lacks are empty.
struct GearExperiment {
  /// Without the prefixes video., state., action.
  std::vector<std::string> views, state_keys, action_keys;
  /// The first language key, without the prefix annotation.
  std::string language_key;
  /// Pixels of a view: VideoResize.
  std::optional<std::int64_t> image_height, image_width;
  /// Share of each side that the crop keeps: VideoCrop.
  std::optional<double> crop;
  /// How the values of each key are normalised: min_max, q99, mean_std and so on, by key.
  std::map<std::string, NormalizationMode> state_modes, action_modes;
  /// relative_action or relative_action_per_horizon.
  std::optional<bool> relative;
  /// Keys whose actions are relative to the state; empty with `relative`: training's default set.
  std::vector<std::string> relative_action_keys;
};

/// Parses the text of conf.yaml. References ${a.b} to other keys of the file are followed. Errors: invalid_argument:
/// not YAML, an unknown normalisation mode, a rotation that is converted (target_rotations), which Troupe does not do.
Result<GearExperiment> parse_gear_experiment(const std::string& text, const std::string& path, const std::string& tag);

/// The text of conf.yaml that makes the reference evaluate this policy (JSON, which is YAML). Deterministic.
std::string gear_experiment_yaml(const PolicySpec& spec);

}  // namespace troupe::workers

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe {

/// What experiment_cfg/conf.yaml of a DreamZero folder says about one embodiment: the resolved training configuration's
/// modality_configs, transforms and relative_action keys. Parts that it lacks are empty.
struct GearExperiment {
  std::vector<std::string> views, state_keys, action_keys;  ///< without the prefixes video., state., action.
  std::string language_key;                                 ///< the first one, without annotation.
  std::optional<std::int64_t> image_height, image_width;    ///< VideoResize
  std::optional<double> crop;                               ///< VideoCrop
  std::map<std::string, NormalizationMode> state_modes, action_modes;
  std::optional<bool> relative;  ///< relative_action or relative_action_per_horizon
  std::vector<std::string> relative_action_keys;
};

/// Parses the text of conf.yaml. References ${a.b} to other keys of the file are followed. Errors: invalid_argument:
/// not YAML, an unknown normalisation mode, a rotation that is converted (target_rotations), which Troupe does not do.
Result<GearExperiment> parse_gear_experiment(const std::string& text, const std::string& path, const std::string& tag);

/// The text of conf.yaml that makes the reference evaluate this policy (JSON, which is YAML). Deterministic.
std::string gear_experiment_yaml(const PolicySpec& spec);

}  // namespace troupe

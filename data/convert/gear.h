#pragma once

// Internal to data/convert: the files that GEAR's loader wants beside LeRobot's metadata, as GEAR's own script
// convert_lerobot_to_gear.py writes them.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/write_files.h"

namespace troupe::data {

/// Writes meta/modality.json and meta/embodiment.json unless the source has them, meta/stats.json with exact statistics
/// of every state, action and timestamp column, and the statistics of relative actions (every action key without
/// "gripper" in its name that has a state key of its name and width; 24 steps). `sum`: statistics of other features.
/// What could not be made is appended to `notes`.
Result<void> write_gear_metadata(const ConvertContext& context, const JsonDoc& sum, std::vector<std::string>& notes);

}  // namespace troupe::data

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/embodiment_config.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"

namespace troupe::data {

/// The keys, cameras and labels that statistics are reported for. With an embodiment: what its samples are made of.
/// Without one: every state and action key of the modality, every camera it names (all cameras when it names none),
/// the first annotation or else task_index. `relative_keys` are as in HealthOptions.
/// Errors: invalid_argument, naming the key and what the dataset has.
Result<SampleColumns> dataset_keys(const LerobotDataset& dataset, const std::optional<EmbodimentConfig>& embodiment,
                                   const std::vector<std::string>& relative_keys);

/// Text of a meta/modality.json that GEAR's loader reads, for these keys: state and action slices by column, start and
/// end, cameras and annotations by their original key.
std::string modality_json(const SampleColumns& keys);

}  // namespace troupe::data

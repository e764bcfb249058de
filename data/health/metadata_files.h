#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "configs/embodiment_config.h"
#include "data/health/health_report.h"
#include "data/health/write_metadata.h"

namespace troupe::data {

/// What `troupe stats --write-metadata` writes: stats.json, relative_stats_dreamzero.json and
/// relative_horizon_stats_dreamzero.json (where there are relative keys), metadata.json (GEAR's experiment metadata);
/// with an embodiment also modality.json and embodiment.json, unless the dataset has them.
///
/// Nothing is written: write_metadata does that. The tag of metadata.json is the embodiment's, else that of the
/// dataset's meta/embodiment.json, else its robot_type, else "new_embodiment". Errors: failed_precondition (no usable
/// episode), those of LerobotDataset::open.
Result<std::vector<MetaText>> metadata_files(const HealthReport& report,
                                             const std::optional<EmbodimentConfig>& embodiment);

}  // namespace troupe::data

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/checkpoint/writer.h"
#include "workers/inference/policy/gear_config.h"
#include "workers/inference/policy/policy_options.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// What a folder holds: a checkpoint of Troupe (docs/checkpoints.md#folder), or DreamZero's networks in GEAR's layout.
enum class CheckpointKind : std::uint8_t { troupe, gear };

/// A Troupe checkpoint has manifest.json, a DreamZero folder config.json. Errors: not_found saying what was looked for.
Result<CheckpointKind> checkpoint_kind(const std::string& folder);

/// Everything but the weights, from either kind of folder. options.embodiment and options.tokenizer are used.
///
/// Statistics: the attachment metadata.json of a Troupe checkpoint, experiment_cfg/metadata.json of a DreamZero folder;
/// norm_stats.json (in the folder or in one folder below assets/, as OpenPI writes it) replaces them where there is
/// one. Order of keys and views, image sizes, relative keys: the job's configuration, or experiment_cfg/conf.yaml, or
/// without it the table of embodiments (workers/inference/policy/embodiment_table.h).
/// Errors: not_found, invalid_argument, data_loss, each naming the file and what to do.
Result<PolicySpec> read_policy_spec(const std::string& folder, const PolicyOptions& options);

/// The same of a job that starts from the Troupe checkpoint in `folder`, or was saved in it: the job says everything
/// but the statistics, which are files of the folder. Errors: as there.
Result<PolicySpec> policy_spec_of(const JobConfig& job, const std::string& folder);

/// What read_policy_spec takes from a Troupe checkpoint beside its manifest, for another checkpoint of the same robot:
/// metadata.json, and norm_stats.json where there is one. Errors: not_found, and those of reading.
Result<std::vector<CheckpointAttachment>> read_statistics_files(const std::string& folder);

/// The parts of a specification that GEAR's config.json holds.
GearConfig to_gear_config(const PolicySpec& spec);

}  // namespace troupe::workers

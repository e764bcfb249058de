#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "workers/checkpoint/export.h"

namespace troupe::workers {

/// Writes a Troupe checkpoint as a DreamZero folder in GEAR's layout (docs/checkpoints.md): all networks in
/// model.safetensors or shards with an index, config.json, experiment_cfg/metadata.json and conf.yaml, and the
/// tokenizer that the job names. config.json is written last. Memory: one frozen network in fp32. Equal checkpoints
/// give equal bytes. Errors: those of read_policy_spec, load_frozen_component and write_weight_shards; invalid_argument
/// for a folder that is no Troupe checkpoint.
Result<ExportSummary> export_gear(const std::string& checkpoint, const std::string& folder, const ExportFormat& format);

}  // namespace troupe::workers

#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "workers/checkpoint/export.h"

namespace troupe::workers {

/// How a DreamZero folder is written.
struct GearExportOptions {
  /// A file of tensors is closed before it grows beyond this; one larger tensor gets a file of its own.
  std::int64_t max_shard_bytes = 5'000'000'000;
  /// Tensors are written as bf16 (rounded to nearest even) instead of fp32.
  bool bf16 = false;
  /// Adapters folded into the weights they adapt; else PEFT's names beside base_layer.
  bool merge_lora = false;
};

/// Writes a Troupe checkpoint as a DreamZero folder in GEAR's layout (docs/checkpoints.md): all networks in
/// model.safetensors or shards with an index, config.json, experiment_cfg/metadata.json and conf.yaml, and the
/// tokenizer that the job names. config.json is written last. Memory: one frozen network in fp32. Equal checkpoints
/// give equal bytes. Errors: those of read_policy_spec, load_frozen_component and write_weight_shards; invalid_argument
/// for a folder that is no Troupe checkpoint.
Result<ExportSummary> export_gear(const std::string& checkpoint, const std::string& folder,
                                  const GearExportOptions& options);

}  // namespace troupe::workers

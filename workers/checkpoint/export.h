#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "workers/checkpoint/tensors.h"
#include "workers/checkpoint/weight_shards.h"

namespace troupe::workers {

/// How an export writes tensors (docs/checkpoints.md#export).
struct ExportFormat {
  /// Bytes of tensor data a file; a larger tensor has a file of its own.
  std::int64_t max_shard_bytes = 5'000'000'000;
  /// Rounded to nearest, ties to even; else fp32.
  bool bf16 = false;
  /// Before every name, such as "action_head.model.".
  std::string prefix{};
  AdapterForm adapters = AdapterForm::separate;
  WeightSet weights = WeightSet::model;
  /// Bytes of tensor data written.
  Progress progress = {};
};

/// Writes the weights of a checkpoint, masters or their averages, as plain tensors under their names: model.safetensors
/// when they fit in `max_shard_bytes`, else model-NNNNN-of-MMMMM.safetensors filled in order of names and
/// model.safetensors.index.json {metadata: {total_size}, weight_map: {tensor: file}}. Tensors are sorted by name and
/// nothing else goes in, so equal weights give equal bytes, whatever world, step or path they come from. Memory: one
/// megabyte of a tensor at a time. The folder is made if need be; files appear under their names only when complete.
/// Errors: those of CheckpointTensors; failed_precondition when the folder already holds an export; resource_exhausted,
/// unavailable.
Result<ExportSummary> export_safetensors(const std::string& checkpoint, const std::string& folder,
                                         const ExportFormat& format);

}  // namespace troupe::workers

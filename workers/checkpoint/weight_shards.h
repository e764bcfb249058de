#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace troupe::workers {

/// A tensor that is to be written.
struct ShardTensor {
  std::string name;
  std::vector<std::int64_t> shape;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

/// Gives elements [begin, begin + count) of tensor `index` as f32. Called for every tensor in order, from begin to
/// end.
using ReadShardTensor =
    std::function<Result<void>(std::size_t index, std::int64_t begin, std::int64_t count, float* out)>;

/// What an export wrote.
struct ExportSummary {
  /// Names in the output folder, the index last.
  std::vector<std::string> files;
  std::int64_t tensors = 0;
  /// Elements.
  std::int64_t parameters = 0;
  /// Of tensor data.
  std::int64_t bytes = 0;
};

/// Writes tensors, sorted by name, as model.safetensors when they fit in `max_shard_bytes`, else as
/// model-NNNNN-of-MMMMM.safetensors filled in order and model.safetensors.index.json {metadata: {total_size},
/// weight_map: {tensor: file}}; fp32, or bf16 rounded to nearest, ties to even. Memory: one megabyte of a tensor at a
/// time. The folder is made if need be; files appear under their names only when complete, and none stays after a
/// failure. Errors: those of `read`; failed_precondition when the folder already holds such files; invalid_argument
/// (names that are not sorted); those of file_error. `progress`: bytes of tensor data.
Result<ExportSummary> write_weight_shards(const std::string& folder, const std::vector<ShardTensor>& tensors,
                                          const ReadShardTensor& read, bool bf16, std::int64_t max_shard_bytes,
                                          const Progress& progress = {});

}  // namespace troupe::workers

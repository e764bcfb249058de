#include "workers/checkpoint/export.h"

namespace troupe::workers {

Result<ExportSummary> export_safetensors(const std::string& checkpoint, const std::string& folder,
                                         const ExportFormat& format) {
  TROUPE_ASSIGN(const auto source, CheckpointTensors::open(checkpoint, format.adapters, format.weights));
  std::vector<ShardTensor> tensors;  // sorted: the source is, and they all have the same prefix
  for (const CheckpointTensor& tensor : source->tensors())
    tensors.push_back({format.prefix + tensor.name, tensor.shape});
  const ReadShardTensor read = [&](std::size_t index, std::int64_t begin, std::int64_t count, float* out) {
    return source->read(index, begin, count, out);
  };
  return write_weight_shards(folder, tensors, read, format.bf16, format.max_shard_bytes, format.progress);
}

}  // namespace troupe::workers

#include "workers/checkpoint/export.h"

#include "workers/checkpoint/weight_shards.h"

namespace troupe::workers {

Result<ExportSummary> export_safetensors(const std::string& checkpoint, const std::string& folder,
                                         std::int64_t max_shard_bytes) {
  ExportFormat format;
  format.max_shard_bytes = max_shard_bytes;
  return export_safetensors(checkpoint, folder, format);
}

Result<ExportSummary> export_safetensors(const std::string& checkpoint, const std::string& folder,
                                         const ExportFormat& format) {
  TROUPE_ASSIGN(const auto source, CheckpointTensors::open(checkpoint, format.adapters));
  ExportSummary summary;
  std::vector<ShardTensor> tensors;  // sorted: the source is, and they all have the same prefix
  for (const CheckpointTensor& tensor : source->tensors()) {
    tensors.push_back({format.prefix + tensor.name, tensor.shape});
    summary.parameters += tensor.numel;
  }
  summary.tensors = static_cast<std::int64_t>(tensors.size());
  const ReadShardTensor read = [&](std::size_t index, std::int64_t begin, std::int64_t count, float* out) {
    return source->read(index, begin, count, out);
  };
  TROUPE_ASSIGN(ShardSummary written, write_weight_shards(folder, tensors, read, format.bf16, format.max_shard_bytes));
  summary.files = std::move(written.files);
  summary.bytes = written.bytes;
  return summary;
}

}  // namespace troupe::workers

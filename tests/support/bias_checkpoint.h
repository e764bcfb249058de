#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workers/checkpoint/writer.h"

namespace troupe::testing {

/// The smallest model there is: one parameter, one number.
inline Manifest bias_manifest(std::int64_t step, std::uint64_t fence, std::int64_t world) {
  Manifest manifest;
  manifest.step = step;
  manifest.fence = fence;
  manifest.world = world;
  const ManifestParam bias{.name = "bias", .shape = {1}, .offset = 0, .numel = 1};
  manifest.units = {{.name = "unit", .layout_class = "unit", .params = {bias}, .numel = 1, .layout_hash = 1}};
  return manifest;
}

/// Its checkpoint of zeros, as the checkpointer writes it into `directory`.
inline WrittenCheckpoint write_bias_checkpoint(const std::string& directory, const Manifest& manifest) {
  const std::vector<std::byte> shard(static_cast<std::size_t>(snapshot_bytes(manifest)));
  CheckpointRequest request{.directory = directory, .manifest = manifest, .attachments = {}};
  request.ranks.assign(static_cast<std::size_t>(manifest.world), shard);
  return CheckpointWriter().write(request).value();
}
inline WrittenCheckpoint write_bias_checkpoint(const std::string& directory, std::int64_t step, std::uint64_t fence,
                                               std::int64_t world) {
  return write_bias_checkpoint(directory, bias_manifest(step, fence, world));
}

}  // namespace troupe::testing

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/io/safetensors.h"
#include "workers/checkpoint/manifest_file.h"

namespace troupe::workers {

/// Writes `path`, one rank's tensors, and beside it the digests of its chunks; both are synced, their names are the
/// caller's to sync. `parts` are the tensors' bytes in order, however they are cut, and are copied nowhere.
///
/// Fault points: checkpoint.write (each chunk of at most 16 MiB) and checkpoint.fsync; their subject is `path`.
/// Errors: those of SafetensorsWriter.
Result<ManifestFile> write_rank_file(const std::string& path, const std::vector<TensorDeclaration>& tensors,
                                     std::span<const std::span<const std::byte>> parts);

}  // namespace troupe::workers

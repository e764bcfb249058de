#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/manifest.h"

namespace troupe::workers {

/// A small file that travels with the checkpoint, such as the ledger of the steps it covers, or trainer_state.json.
/// It is listed in the manifest with its digest, like a rank file.
struct CheckpointAttachment {
  /// Plain file name.
  std::string name;
  std::string bytes;
};

/// What to write.
struct CheckpointRequest {
  /// .../step_NNNNNN.tmp-<16 hex fence>; must not be anything else.
  std::string directory;
  /// Everything but `files`; `world` says how many ranks there are.
  Manifest manifest;
  /// Each rank's state: for each unit in order master f32[n], m and v, f32[n] or bf16[n] each, and, with an average,
  /// ema f32[n] with n = unit.shard(world), of a unit without moments master alone, of one in the base nothing. Views;
  /// they stay valid and unchanged until write returns.
  std::vector<std::span<const std::byte>> ranks = {};
  std::vector<CheckpointAttachment> attachments;
};

/// What was written.
struct WrittenCheckpoint {
  std::string directory;
  /// Of all files.
  std::int64_t bytes = 0;
  /// XXH3-128 of manifest.json, 32 hex digits.
  std::string manifest_hash;
};

/// Writes a checkpoint into its temporary directory: rank files with their digests by chunk, attachments, each fsynced,
/// then manifest.json by rename; the directory is fsynced before and after. The caller commits it (commit.h). A
/// directory of the same name left by an earlier attempt is replaced. Digests are computed while writing. Stateless;
/// one write per directory at a time.
///
/// Fault points: checkpoint.create (the directory), checkpoint.write (each chunk of at most 16 MiB), checkpoint.fsync
/// and checkpoint.manifest; their subject is the file's path.
/// Errors: invalid_argument for a request that contradicts itself; resource_exhausted, naming the file and the cause,
/// for anything that went wrong on disk. After an error the directory is gone.
class CheckpointWriter {
 public:
  Result<WrittenCheckpoint> write(const CheckpointRequest& request) const;
};

/// Bytes of one rank's state: 12 per shard element, 4 more with an average, 4 fewer with bf16 moments, 4 where there
/// are no moments, 0 where the base has it.
std::int64_t snapshot_bytes(const Manifest& manifest);

}  // namespace troupe::workers

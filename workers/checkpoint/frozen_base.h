#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/manifest.h"
#include "workers/checkpoint/shard_files.h"

namespace troupe::workers {

// The frozen weights of a run, in the dtype that ranks hold them in: written once and named by the checkpoints of the
// run (docs/checkpoints.md#base). FOLDER is that of the checkpoints:
//     FOLDER/base.tmp-<fence>   being written by the ranks of that group, one file each
//     FOLDER/base_<digest>      closed: those files and manifest.json, whose XXH3-128 is the digest

/// Path of the folder that the ranks of a group write into.
std::string base_tmp_folder(const std::string& folder, std::uint64_t fence);

/// Path of the base that a checkpoint names, whether it is there or not: in the folder that holds the checkpoint, links
/// followed. Errors: those of file_error.
Result<std::string> base_folder(const std::string& checkpoint, const Manifest& manifest);

/// What a rank's file of a base holds: the masters of the units that are in it. `dtype`: "F32" or "BF16".
ShardFiles::Layout base_layout(const std::vector<ManifestUnit>& units, std::int64_t world, const std::string& dtype);

/// Closes the base that the ranks of `manifest`'s fence wrote: checks every rank's file, writes the manifest and
/// renames the folder. Does no harm twice. Returns the digest; nothing where this group wrote none. Errors: data_loss;
/// those of file_error.
Result<std::optional<std::string>> close_base(const std::string& folder, const Manifest& manifest);

/// Removes the bases that no checkpoint in `folder` names, set aside ones included, and the unfinished ones, if their
/// fence is below `current_fence`. Removes no base while a manifest does not read. What cannot be removed is logged.
void prune_bases(const std::string& folder, std::uint64_t current_fence);

/// An open base. Immutable: any number of threads may read. All errors are failed_precondition and name its folder:
/// every checkpoint of the run needs it, so that an older one is no way out.
class FrozenBase {
 public:
  /// The one that a checkpoint names, in the folder that holds the checkpoint.
  static Result<FrozenBase> open(const std::string& checkpoint, const Manifest& manifest);

  /// Elements [begin, begin + count) of a unit that is in it, as f32; compared as ShardFiles::read does.
  Result<void> read(std::size_t unit, std::int64_t begin, std::int64_t count, float* out) const;
  /// Compares all bytes with their digests.
  Result<void> check_all() const;
  std::int64_t checked_bytes() const { return shards_.checked_bytes(); }

 private:
  FrozenBase(std::string folder, ShardFiles shards);

  std::string folder_;
  ShardFiles shards_;
};

}  // namespace troupe::workers

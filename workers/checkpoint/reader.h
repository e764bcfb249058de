#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/manifest.h"
#include "workers/checkpoint/shard_files.h"
#include "workers/checkpoint/weight_set.h"

namespace troupe::workers {

/// Reads the state in a checkpoint directory, whatever world wrote it, and that of its base, which lies beside it.
/// Files are mapped, so memory use is the page cache's. Immutable: any number of threads may read. With n =
/// ManifestUnit::shard(world), element e of a unit lies in rank file e / n at e mod n.
class CheckpointReader {
 public:
  /// Master weights, the optimizer's two moments and the average of the masters; f32, moments perhaps bf16.
  enum class Kind : std::uint8_t { master, m, v, ema };

  /// Reads the manifest and opens every rank file: sizes, headers, the tensors that the layout asks for.
  /// Errors: not_found without a manifest; data_loss; failed_precondition, naming its folder, for a base that is not
  /// there or damaged, here and below: the checkpoint itself is good.
  static Result<std::unique_ptr<CheckpointReader>> open(const std::string& directory);

  const Manifest& manifest() const { return manifest_; }
  /// Where a set of weights lies. Errors: failed_precondition for averages where there are none.
  Result<Kind> kind_of(WeightSet set) const;
  const std::string& directory() const { return directory_; }

  /// Reads every file once, those of the base too, and compares digests. Errors: data_loss naming the file.
  Result<void> verify_digests() const;
  /// The same of a checkpoint of format 1, whose digests read() cannot compare by chunk; nothing to do for others.
  Result<void> verify_unlisted() const { return manifest_.format == 1 ? verify_digests() : Result<void>(); }
  /// Compares all but rank files and the base, which read() compares as far as it reads them. Errors: data_loss.
  Result<void> verify_small_files() const;

  /// Whether a model with these units can take this state: same units, same parameters, those of a base at the same
  /// places (others are found by name: CheckpointState). The error names the first that differs. Errors:
  /// failed_precondition.
  Result<void> check_layout(const std::vector<ManifestUnit>& expected) const;

  /// A small file beside the shards (CheckpointAttachment), compared with its digest; empty where there is none, as in
  /// checkpoints of earlier versions. Errors: data_loss.
  Result<std::string> attachment(std::string_view name) const;

  /// Elements [begin, begin + count) of a unit's flat buffer. Elements past unit.numel are padding and read as 0, so
  /// a new rank reads its whole shard [rank * n, (rank + 1) * n). Moments that a unit does not have read as 0, an
  /// average as its master.
  /// The chunks that hold them are compared with their digests when they are first read.
  /// Errors: invalid_argument; data_loss naming the file and the chunk.
  Result<void> read(std::int64_t unit, Kind kind, std::int64_t begin, std::int64_t count, float* out) const;
  /// Bytes of the chunks compared so far, the base's too.
  std::int64_t checked_bytes() const;

 private:
  CheckpointReader(std::string directory, Manifest manifest, ShardFiles shards, std::optional<FrozenBase> base);

  std::string directory_;
  Manifest manifest_;
  ShardFiles shards_;
  std::optional<FrozenBase> base_;
};

}  // namespace troupe::workers

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/manifest.h"

namespace troupe::workers {

/// Reads the state in a checkpoint directory, whatever world wrote it. Rank files are mapped, so memory use is the
/// page cache's. Immutable: any number of threads may read. With n = ManifestUnit::shard(world), element e of a unit
/// lies in rank file e / n at e mod n.
class CheckpointReader {
 public:
  /// Master weights and AdamW's two moments, f32 each.
  enum class Kind : std::uint8_t { master, m, v };

  /// Reads the manifest and opens every rank file: sizes, headers, the tensors that the layout asks for.
  /// Errors: not_found without a manifest, data_loss.
  static Result<std::unique_ptr<CheckpointReader>> open(const std::string& directory);
  ~CheckpointReader();

  const Manifest& manifest() const { return manifest_; }
  const std::string& directory() const { return directory_; }

  /// Reads every file once and compares digests. Errors: data_loss naming the file.
  Result<void> verify_digests() const;

  /// Whether a model with these units can take this state: same units, same parameters at the same places. The hashes
  /// decide; the error names the first tensor that differs. Errors: failed_precondition.
  Result<void> check_layout(const std::vector<ManifestUnit>& expected) const;

  /// What the trainer kept beside the shards (Trainer::state); empty where there was nothing. Errors: data_loss.
  Result<std::string> trainer_state() const;

  /// Elements [begin, begin + count) of a unit's flat buffer. Elements past unit.numel are padding and read as 0, so
  /// a new rank reads its whole shard [rank * n, (rank + 1) * n). A frozen unit's moments read as 0.
  /// Errors: invalid_argument.
  Result<void> read(std::int64_t unit, Kind kind, std::int64_t begin, std::int64_t count, float* out) const;

 private:
  struct Shards;
  CheckpointReader(std::string directory, Manifest manifest, std::unique_ptr<Shards> shards);

  std::string directory_;
  Manifest manifest_;
  std::unique_ptr<Shards> shards_;
};

}  // namespace troupe::workers

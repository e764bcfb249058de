#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/io/chunk_digests.h"
#include "model/io/safetensors.h"
#include "workers/checkpoint/manifest_file.h"

namespace troupe::workers {

/// The rank files of one folder, a checkpoint's or a base's: of each unit some tensors, cut into shards. They are
/// mapped, so memory use is the page cache's. What is read is compared with its digests first, chunk by chunk and once.
/// Immutable: any number of threads may read.
class ShardFiles {
 public:
  /// Which tensors each file holds.
  struct Layout {
    std::int64_t world = 1;
    struct Tensor {
      std::string name;
      /// "F32" or "BF16"
      std::string dtype = "F32";
    };
    /// What a file holds of a unit: tensors of `shard` elements. A unit may have none here.
    struct Unit {
      std::int64_t shard = 0;
      std::vector<Tensor> tensors;
    };
    std::vector<Unit> units;
  };

  /// Opens every rank's file: headers and the tensors that the layout asks for. `files` are the manifest's. Errors:
  /// data_loss.
  static Result<ShardFiles> open(const std::string& directory, Layout layout, const std::vector<ManifestFile>& files);

  /// Elements [begin, begin + count) of one of a unit's tensors over all ranks, as f32. Errors: data_loss.
  Result<void> read(std::size_t unit, std::size_t tensor, std::int64_t begin, std::int64_t count, float* out) const;
  /// Compares all bytes of all files with their digests. Errors: data_loss naming the file.
  Result<void> check_all() const;
  /// Bytes that were compared, and of the digests read for it; of files without digests by chunk none.
  std::int64_t checked_bytes() const;

 private:
  /// A file's digests by chunk, read when the file is: a rank of many reads few files.
  struct Chunks {
    std::mutex mutex;
    std::optional<CheckedChunks> opened;
  };
  struct RankFile {
    SafetensorsReader file;
    ManifestFile listed;
    std::unique_ptr<Chunks> chunks;
    /// of each unit
    std::vector<std::vector<TensorInfo>> tensors;
  };
  static Result<RankFile> open_rank(const std::string& directory, const ManifestFile& listed, const Layout& layout);
  /// Of a file that has them.
  Result<const CheckedChunks*> chunks_of(const RankFile& rank) const;
  Result<void> read_rank(const RankFile& from, const TensorInfo& tensor, std::int64_t begin, std::int64_t count,
                         float* out) const;

  std::string directory_;
  Layout layout_;
  std::vector<RankFile> ranks_;
};

}  // namespace troupe::workers

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/encoder/feature_file.h"
#include "workers/encoder/feature_record.h"

namespace troupe::workers {

/// Where data begin in a shard: its safetensors header has this much room, so that entries can be written before their
/// number is known.
inline constexpr std::uint64_t kShardHeaderBytes = std::uint64_t{1} << 20;

/// Files of a writer inside the cache folder: NAME.index, and NAME-0000.part, which becomes NAME-0000.safetensors when
/// it is full or its writer ends.
std::string index_file(const std::string& folder, const std::string& writer);
std::string shard_file(const std::string& folder, const std::string& writer, std::uint32_t shard, bool finished);

/// Appends tensors to shards of its own. An entry is: its bytes into the shard, then its record into the index, so that
/// a record never stands for bytes that were not written; a process that dies between the two loses that entry alone.
/// Both are synced, shard first, every kSyncBytes and at the end of a shard: what a power cut tears off is found by its
/// checksum. Holds the lock of its index as long as it lives. Not thread-safe.
class FeatureWriter {
 public:
  /// 1 GiB of data a shard.
  static constexpr std::uint64_t kDefaultShardBytes = std::uint64_t{1} << 30;
  /// 64 MiB between two syncs.
  static constexpr std::uint64_t kSyncBytes = std::uint64_t{64} << 20;

  /// A writer of a fresh name (16 random hex digits), whose index it locks. Errors: resource_exhausted, unavailable.
  static Result<std::unique_ptr<FeatureWriter>> create(const std::string& folder,
                                                       std::uint64_t shard_bytes = kDefaultShardBytes);
  /// Finishes the shard; a failure is logged and left to seal_orphans.
  ~FeatureWriter();

  const std::string& name() const { return name_; }
  /// Records written so far.
  std::uint32_t records() const { return records_; }
  /// Appends one tensor; `record` says kind, dtype, shape, key and alias. An error leaves the writer as it was.
  /// Errors: invalid_argument (encode_record), resource_exhausted, unavailable.
  Result<void> append(FeatureRecord record, std::span<const std::byte> bytes);
  /// Everything appended is on disk.
  Result<void> sync();
  /// Finishes the open shard.
  Result<void> seal();

 private:
  FeatureWriter(std::string folder, std::string name, std::shared_ptr<FeatureFile> index, std::uint64_t shard_bytes)
      : folder_(std::move(folder)), name_(std::move(name)), index_(std::move(index)), shard_bytes_(shard_bytes) {}
  /// Creates NAME-NNNN.part and leaves room for its header.
  Result<void> open_shard();

  const std::string folder_, name_;
  const std::shared_ptr<FeatureFile> index_;
  const std::uint64_t shard_bytes_;
  // Null between shards.
  std::shared_ptr<FeatureFile> shard_;
  std::vector<FeatureRecord> in_shard_;
  std::uint32_t next_shard_ = 0, records_ = 0;
  // data_end_: of the open shard's data.
  std::uint64_t data_end_ = 0, unsynced_ = 0;
};

/// Finishes what writers that died left open: shards become safetensors files, empty ones go. Writers that live (they
/// hold their lock) are left alone. Returns how many shards were finished. Any process, at any time.
Result<std::int64_t> seal_orphans(const std::string& folder);

}  // namespace troupe::workers

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "workers/encoder/feature_file.h"
#include "workers/encoder/feature_key.h"
#include "workers/encoder/feature_writer.h"

namespace troupe::workers {

/// What frozen networks made, on disk, by key: one folder that any number of processes read and add to at the same
/// time (docs/features.md#bytes-of-the-cache). An entry is found by its key or by its alias.
/// What is damaged is found by its checksum, counted, logged, and no longer there: put() writes it anew. Entries of
/// another model have other keys and are simply not found. Any thread.
class FeatureCache {
 public:
  /// How a process writes and how often it looks for others' entries.
  struct Options {
    /// Of data, after which a shard is finished.
    std::uint64_t shard_bytes = FeatureWriter::kDefaultShardBytes;
    /// A miss looks for what other processes added, at most this often.
    std::chrono::milliseconds refresh_every{2'000};
  };
  struct Stats {
    /// Of find().
    std::int64_t hits = 0, misses = 0;
    /// Entries and records that their checksums condemn.
    std::int64_t damaged = 0;
    /// Entries put here.
    std::int64_t written = 0;
    std::int64_t bytes_written = 0, bytes_read = 0;
    /// Records known of all writers, and the tensors' bytes.
    std::int64_t entries = 0, bytes = 0;
  };

  /// Opens the folder, making it when absent, and finishes shards that dead writers left open. Errors: those of
  /// file_error, failed_precondition (an index of a later version), all naming the path.
  static Result<std::shared_ptr<FeatureCache>> open(const std::string& folder, const Options& options);
  static Result<std::shared_ptr<FeatureCache>> open(const std::string& folder) { return open(folder, Options()); }

  const std::string& folder() const { return folder_; }
  /// Whether an entry is known, without reading it; looks for what others added, as find().
  bool contains(const FeatureKey& key);
  /// The tensor stored under `key`, whole and sound, or nothing.
  std::optional<FeatureTensor> find(const FeatureKey& key);
  /// Stores a tensor unless it is there. Errors: those of FeatureWriter::append; the cache stays usable.
  Result<void> put(FeatureKind kind, const FeatureKey& key, const FeatureKey& alias, const FeatureTensor& tensor);
  /// Everything put so far is on disk.
  Result<void> sync();
  /// Takes in what other processes have added.
  Result<void> refresh();
  /// Says in models/NAME.json which network entries come from, for people. Errors: those of file_error.
  Result<void> describe_model(const std::string& name, const std::string& identity);
  Stats stats() const;

 private:
  /// A record: of which writer, which one.
  struct Place {
    std::uint32_t writer = 0, record = 0;
  };
  /// One index file, by the order in which this process found it.
  struct Writer {
    std::string name;
    /// Taken in: records of its index that are in places_.
    std::uint32_t records = 0;
  };
  FeatureCache(std::string folder, Options options) : folder_(std::move(folder)), options_(options) {}

  std::optional<Place> place_of(const FeatureKey& key);
  // Requires mutex_. Reads the records that a writer has appended since the last time.
  Result<void> take_in(std::uint32_t writer);
  // Requires mutex_. Finds new writers and takes in what all have appended.
  Result<void> refresh_locked();
  // Requires mutex_. Enters a record under its key and its alias.
  void add(const FeatureRecord& record, Place place);
  // Requires mutex_.
  std::uint32_t writer_number(const std::string& name);
  /// Reads and checks one entry. Errors: data_loss (checksum), those of file_error.
  Result<FeatureTensor> read(const std::string& writer, Place place, const FeatureKey& key);
  /// From NAME-NNNN.safetensors, or NAME-NNNN.part while it is open.
  Result<void> read_shard(const std::string& writer, const FeatureRecord& record, std::span<std::byte> out);
  /// Logs and counts a damaged entry, and forgets it, so that put() writes it anew.
  void condemn(const FeatureKey& key, Place place, const Error& why);

  const std::string folder_;
  const Options options_;
  OpenFeatureFiles files_{64};

  mutable std::mutex mutex_;
  std::vector<Writer> writers_;
  std::unordered_multimap<FeatureKey, Place> places_;
  std::chrono::steady_clock::time_point refreshed_{};
  Stats stats_;

  // Taken before mutex_.
  std::mutex write_mutex_;
  std::unique_ptr<FeatureWriter> writer_;
};

}  // namespace troupe::workers

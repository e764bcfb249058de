#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/result.h"

namespace troupe::model {

// Digests of a file by chunk, so that a reader checks what it reads and nothing else. The list is text: for each chunk
// of kDigestChunk bytes, the last one shorter, a line with its XXH3-128 as 32 hex digits.

/// Bytes. A rank of a large world reads some 10 MB of a unit in one piece, of which the chunks at both ends must stay a
/// small part.
inline constexpr std::int64_t kDigestChunk = std::int64_t{64} << 10;

/// Bytes of the list of a file of `size` bytes.
std::int64_t chunk_list_bytes(std::int64_t size);

/// Makes the list while a file is written in order. Not thread-safe; not copyable.
class ChunkDigests {
 public:
  void update(std::span<const std::byte> bytes);
  /// Of everything added so far; more may follow.
  std::string list() const;

 private:
  std::string lines_;
  std::optional<Xxh3Stream> chunk_;
  std::size_t filled_ = 0;
};

/// A mapped file beside its list. A chunk is read and compared when it is first asked for. Any number of threads may
/// check; two that meet in one chunk both read it.
class CheckedChunks {
 public:
  /// `path` is named in errors, `file` must outlive it. Errors: data_loss for a list that is not one of this file.
  static Result<CheckedChunks> open(std::string path, std::span<const std::byte> file, std::string list);

  /// Bytes [begin, begin + count) of the file are what was written. Errors: data_loss naming the file and the place of
  /// the first chunk that is not.
  Result<void> check(std::int64_t begin, std::int64_t count) const;
  /// The whole file.
  Result<void> check_all() const { return check(0, static_cast<std::int64_t>(file_.size())); }
  /// Bytes of the chunks that were compared and found good.
  std::int64_t checked_bytes() const;

 private:
  CheckedChunks(std::string path, std::span<const std::byte> file, std::string list);
  std::span<const std::byte> chunk(std::size_t index) const;

  std::string path_;
  std::span<const std::byte> file_;
  std::string list_;
  std::size_t chunks_;
  /// of each chunk: it was found good
  std::unique_ptr<std::atomic<bool>[]> good_;
};

}  // namespace troupe::model

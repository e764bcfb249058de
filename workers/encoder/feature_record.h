#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/encoder/feature_key.h"

namespace troupe {

// The index of one writer: a header of 16 bytes, then records of 104 bytes, only ever appended (docs/features.md).

inline constexpr std::size_t kIndexHeaderBytes = 16;
inline constexpr std::size_t kIndexRecordBytes = 104;
inline constexpr std::size_t kMaxFeatureDims = 6;

/// Where a tensor lies and what it is.
struct FeatureRecord {
  FeatureKind kind = FeatureKind::text;
  std::string dtype;                ///< F32 or BF16
  std::vector<std::int64_t> shape;  ///< at most kMaxFeatureDims
  FeatureKey key;
  FeatureKey alias;          ///< found by this, too; zero: none
  std::uint32_t shard = 0;   ///< of the same writer
  std::uint64_t offset = 0;  ///< bytes from the start of the shard's data
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3-64 of the bytes
};

/// The header of an index file.
std::array<std::byte, kIndexHeaderBytes> index_header();
/// Errors: data_loss for other bytes, failed_precondition for a later version; both without the file's name.
Result<void> check_index_header(std::span<const std::byte> bytes);

/// Errors: invalid_argument (a dtype, rank or dimension that a record cannot hold, a size that does not match them).
Result<std::array<std::byte, kIndexRecordBytes>> encode_record(const FeatureRecord& record);
/// Nothing when the bytes are not a whole, sound record: magic, checksum, known kind and dtype, size as shape and dtype
/// say.
std::optional<FeatureRecord> decode_record(std::span<const std::byte> bytes);

}  // namespace troupe

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

namespace troupe::workers {

// The index of one writer: a header of 16 bytes, then records of 104 bytes, only ever appended (docs/features.md).

// The index of one writer, only ever appended, little-endian
// (docs/features.md#bytes-of-the-cache):
//     header, 16 bytes   "TROUPEFX", u32 version 1, u32 record size 104
//     record, 104 bytes  0 "TFR1"  4 u8 kind  5 u8 dtype (1 F32, 2 BF16)  6 u8 dimensions  7 u8 0  8 key[16]
//                        24 alias[16]  40 u32 shard  44 u32 0  48 u64 offset  56 u64 bytes  64 u64 XXH3-64 of tensor
//                        72 u32 dimension[6]  96 u64 XXH3-64 of the 96 bytes before
inline constexpr std::size_t kIndexHeaderBytes = 16;
inline constexpr std::size_t kIndexRecordBytes = 104;
inline constexpr std::size_t kMaxFeatureDims = 6;

/// Where a tensor lies and what it is.
struct FeatureRecord {
  FeatureKind kind = FeatureKind::text;
  /// F32 or BF16.
  std::string dtype;
  /// At most kMaxFeatureDims.
  std::vector<std::int64_t> shape = {};
  FeatureKey key = {};
  /// Found by this, too; zero: none.
  FeatureKey alias = {};
  /// Of the same writer.
  std::uint32_t shard = 0;
  /// Bytes from the start of the shard's data.
  std::uint64_t offset = 0;
  /// Of the tensor: product of shape times 4 (F32) or 2 (BF16).
  std::uint64_t bytes = 0;
  /// XXH3-64 of the bytes.
  std::uint64_t checksum = 0;
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

}  // namespace troupe::workers

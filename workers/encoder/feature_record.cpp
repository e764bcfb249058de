#include "workers/encoder/feature_record.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/hash.h"

namespace troupe::workers {

namespace {

constexpr char kMagic[] = "TROUPEFX";  // without its zero
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kRecordMagic = 0x31524654;  // "TFR1"
constexpr std::size_t kCheckAt = 96;

// Offsets of a record's fields.
constexpr std::size_t kKindAt = 4, kDtypeAt = 5, kRankAt = 6, kKeyAt = 8, kAliasAt = 24, kShardAt = 40, kOffsetAt = 48,
                      kBytesAt = 56, kChecksumAt = 64, kShapeAt = 72;

template <class T>
void put(std::span<std::byte> out, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

template <class T>
T get(std::span<const std::byte> in, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(std::to_integer<std::uint64_t>(in[at + i]) << (8 * i)));
  }
  return value;
}

std::uint8_t dtype_code(std::string_view dtype) { return dtype == "F32" ? 1 : dtype == "BF16" ? 2 : 0; }

/// Bytes of a tensor, or nothing when they do not fit 63 bits.
std::optional<std::uint64_t> size_of(std::uint8_t dtype, std::span<const std::int64_t> shape) {
  std::int64_t bytes = dtype == 1 ? 4 : 2;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

std::array<std::byte, kIndexHeaderBytes> index_header() {
  std::array<std::byte, kIndexHeaderBytes> header{};
  std::memcpy(header.data(), kMagic, 8);
  put<std::uint32_t>(header, 8, kVersion);
  put<std::uint32_t>(header, 12, static_cast<std::uint32_t>(kIndexRecordBytes));
  return header;
}

Result<void> check_index_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kIndexHeaderBytes || std::memcmp(bytes.data(), kMagic, 8) != 0) {
    return Error{Errc::data_loss, "not the index of a feature cache"};
  }
  const auto version = get<std::uint32_t>(bytes, 8), record = get<std::uint32_t>(bytes, 12);
  if (version == kVersion && record == kIndexRecordBytes) return {};
  return Error{Errc::failed_precondition,
               fmt::format("version {} with records of {} bytes; this build reads version {} with {}", version, record,
                           kVersion, kIndexRecordBytes)};
}

Result<std::array<std::byte, kIndexRecordBytes>> encode_record(const FeatureRecord& record) {
  const std::uint8_t dtype = dtype_code(record.dtype);
  if (dtype == 0)
    return Error{Errc::invalid_argument, fmt::format("features of dtype '{}'; F32 and BF16 are kept", record.dtype)};
  if (record.shape.size() > kMaxFeatureDims) {
    return Error{Errc::invalid_argument,
                 fmt::format("features of {} dimensions; at most {} are kept", record.shape.size(), kMaxFeatureDims)};
  }
  const auto size = size_of(dtype, record.shape);
  if (!size || *size != record.bytes) {
    return Error{Errc::invalid_argument, fmt::format("{} bytes of features do not match [{}] {}", record.bytes,
                                                     fmt::join(record.shape, ","), record.dtype)};
  }
  std::array<std::byte, kIndexRecordBytes> out{};
  put<std::uint32_t>(out, 0, kRecordMagic);
  out[kKindAt] = static_cast<std::byte>(record.kind);
  out[kDtypeAt] = static_cast<std::byte>(dtype);
  out[kRankAt] = static_cast<std::byte>(record.shape.size());
  std::memcpy(&out[kKeyAt], record.key.bytes.data(), 16);
  std::memcpy(&out[kAliasAt], record.alias.bytes.data(), 16);
  put<std::uint32_t>(out, kShardAt, record.shard);
  put<std::uint64_t>(out, kOffsetAt, record.offset);
  put<std::uint64_t>(out, kBytesAt, record.bytes);
  put<std::uint64_t>(out, kChecksumAt, record.checksum);
  for (std::size_t i = 0; i < record.shape.size(); ++i) {
    if (record.shape[i] > std::numeric_limits<std::uint32_t>::max()) {
      return Error{Errc::invalid_argument, fmt::format("a dimension of {} features", record.shape[i])};
    }
    put<std::uint32_t>(out, kShapeAt + 4 * i, static_cast<std::uint32_t>(record.shape[i]));
  }
  put<std::uint64_t>(out, kCheckAt, xxh3_64(std::span<const std::byte>(out).first(kCheckAt)));
  return out;
}

std::optional<FeatureRecord> decode_record(std::span<const std::byte> bytes) {
  if (bytes.size() < kIndexRecordBytes || get<std::uint32_t>(bytes, 0) != kRecordMagic) return std::nullopt;
  if (get<std::uint64_t>(bytes, kCheckAt) != xxh3_64(bytes.first(kCheckAt))) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(bytes[kKindAt]),
             dtype = std::to_integer<std::uint8_t>(bytes[kDtypeAt]);
  const auto rank = std::to_integer<std::size_t>(bytes[kRankAt]);
  if (kind < 1 || kind > 4 || dtype < 1 || dtype > 2 || rank > kMaxFeatureDims) return std::nullopt;
  FeatureRecord record{.kind = static_cast<FeatureKind>(kind),
                       .dtype = dtype == 1 ? "F32" : "BF16",
                       .shard = get<std::uint32_t>(bytes, kShardAt),
                       .offset = get<std::uint64_t>(bytes, kOffsetAt),
                       .bytes = get<std::uint64_t>(bytes, kBytesAt),
                       .checksum = get<std::uint64_t>(bytes, kChecksumAt)};
  for (std::size_t i = 0; i < rank; ++i) record.shape.push_back(get<std::uint32_t>(bytes, kShapeAt + 4 * i));
  std::memcpy(record.key.bytes.data(), &bytes[kKeyAt], 16);
  std::memcpy(record.alias.bytes.data(), &bytes[kAliasAt], 16);
  const auto size = size_of(dtype, record.shape);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  if (!record.key || !size || *size != record.bytes || record.offset > kMost || record.bytes > kMost)
    return std::nullopt;
  return record;
}

}  // namespace troupe::workers

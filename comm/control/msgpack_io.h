#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace troupe::comm {

// Internal to comm/: strict, bounded reading and writing of flat MessagePack maps (docs/wire.md#payload).

/// Bounds of one MessagePack object; the same ones hold when writing, so that nothing is sent that a peer would refuse.
struct WireLimits {
  /// Elements of one array.
  std::uint32_t array = 4096;
  /// Pairs of one map.
  std::uint32_t map = 256;
  /// Bytes of one string.
  std::uint32_t str = 65'536;
  /// Bytes of one byte string.
  std::uint32_t bin = 1'048'576;
  /// Containers inside each other.
  std::uint32_t depth = 16;
};

/// Where a field's value lies. Integers and floats are never converted into each other.
using FieldTarget =
    std::variant<std::int64_t*, std::uint64_t*, double*, bool*, std::string*, std::array<std::uint8_t, 16>*,
                 std::vector<std::string>*, std::vector<std::int64_t>*, std::map<std::string, std::int64_t>*,
                 std::map<std::string, double>*, std::map<std::string, std::string>*>;

/// One pair of the outer map.
struct Field {
  /// Unique in its map; `target` must outlive the call.
  std::uint64_t key = 0;
  FieldTarget target;
  /// Set by read_map.
  bool present = false;
};

/// Reads a map with unsigned integer keys into the fields' targets. Absent keys leave their target as it is; unknown
/// keys are skipped. Refuses: bytes after the map, duplicate keys, keys that are not unsigned integers, a value of
/// another type, a negative value for an unsigned field, a non-finite value for a single double (values of maps may
/// be), text that is not UTF-8, extension types, anything over `limits`, and counts that the remaining bytes cannot
/// hold. Allocates only what ends up in targets. On error targets are partly set. Errors: invalid_argument.
Result<void> read_map(std::span<const std::byte> bytes, std::span<Field> fields, const WireLimits& limits);

/// The map of all fields in the order given. Errors: invalid_argument (over a limit, not UTF-8, a single double that is
/// not finite).
Result<std::vector<std::byte>> write_map(std::span<const Field> fields, const WireLimits& limits);

}  // namespace troupe::comm

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/serve/wire_value.h"

namespace troupe::comm {

/// Bounds of one message of a policy client. All are checked before anything is allocated for what they bound.
struct WireTreeLimits {
  /// The whole message.
  std::size_t bytes = std::size_t{64} << 20;
  /// Containers inside each other.
  std::uint32_t depth = 16;
  /// Values in the tree; items of arrays do not count.
  std::uint32_t values = 65'536;
  /// Bytes of one string or name.
  std::uint32_t text = 65'536;
};

/// How arrays are written. Both forms are read, whatever is written.
enum class ArrayForm : std::uint8_t {
  /// Map with bin keys __ndarray__, data, dtype, shape.
  openpi,
  /// Map with str keys __ndarray_class__, as_npy (the bytes of a .npy file).
  groot,
};

/// Reads one MessagePack value with the arrays of OpenPI and GR00T clients (docs/serve.md). Names may be str or bin.
/// A NumPy scalar becomes an array without dimensions. Errors: invalid_argument, saying what was found: bytes after the
/// value, an extension type, a name twice, a name that is no text, text that is not UTF-8, an integer over 63 bits,
/// a count or length that the message cannot hold, anything over `limits`, arrays of kind V, O or c.
Result<WireValue> decode_wire_tree(std::span<const std::byte> bytes, const WireTreeLimits& limits = {});

/// The value's bytes. Integers as short as they go, floats always 64 bits, names as str (arrays: see ArrayForm).
std::vector<std::byte> encode_wire_tree(const WireValue& value, ArrayForm form);

}  // namespace troupe::comm

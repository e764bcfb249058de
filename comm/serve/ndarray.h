#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::comm {

/// An array as NumPy sends it: little-endian, C order. Owns its bytes.
struct NdArray {
  /// numpy's dtype.str: "|u1", "<f4", "<f8", "<i8", "|b1", ...
  std::string dtype;
  /// Empty for a scalar.
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
  friend bool operator==(const NdArray&, const NdArray&) = default;
};

}  // namespace troupe::comm

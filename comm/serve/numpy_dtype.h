#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/serve/ndarray.h"

namespace troupe::comm {

/// A NumPy dtype.str that may cross the wire.
struct NumpyDtype {
  /// B, i, u, f, S or U.
  char kind = 0;
  std::int64_t item_bytes = 0;
};

/// Reads "|u1", "<f4", "<U12". Errors: invalid_argument for another kind (V, O and c among them), another size, or
/// big-endian data.
Result<NumpyDtype> parse_dtype(std::string_view text);

/// Bytes of an array of that shape. Errors: invalid_argument (negative, more than 8 dimensions, over 2^62 bytes).
Result<std::int64_t> array_bytes(const NumpyDtype& dtype, std::span<const std::int64_t> shape);

/// The array after all checks: dtype, shape, and that `data` holds exactly its bytes. Errors: invalid_argument.
Result<NdArray> make_ndarray(std::string dtype, std::vector<std::int64_t> shape, std::vector<std::byte> data);

/// Numbers of an array of kind b, i, u or f as doubles, row-major; f16 is read too. Errors: invalid_argument (text).
Result<std::vector<double>> to_doubles(const NdArray& array);

/// The texts of an array of kind S or U, as UTF-8. Errors: invalid_argument (numbers, or no Unicode text).
Result<std::vector<std::string>> to_texts(const NdArray& array);

}  // namespace troupe::comm

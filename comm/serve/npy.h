#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/serve/ndarray.h"

namespace troupe::comm {

/// Reads the bytes of a `.npy` file of version 1 or 2 (docs/serve.md): magic, header length, a Python dict of `descr`,
/// `fortran_order` and `shape`, then the items. Fortran order is turned into C order. The dict is read by a parser of
/// exactly these three entries; nothing is evaluated. Errors: invalid_argument (what is wrong, and at which byte).
Result<NdArray> read_npy(std::span<const std::byte> bytes);

/// The bytes numpy.save writes for the array: version 1, header padded with blanks to a multiple of 64.
std::vector<std::byte> write_npy(const NdArray& array);

}  // namespace troupe::comm

#pragma once

#include <string>

#include "base/result.h"

namespace troupe::device::standin {

/// The PTX in the wrapper that nvcc gives __cudaRegisterFatBinary. The object must have been compiled with
/// `--no-compress` and with PTX among its targets (`-gencode arch=compute_90,code=[sm_90,compute_90]`).
/// Errors: invalid_argument for anything else.
/// Source: the layout is that of what nvcc 13.0 writes: a wrapper {magic 0x466243b1, version, pointer}, then a header
/// {magic 0xba55ed50, u16 version, u16 bytes of the header, u64 bytes behind it}, then entries {u16 kind: 1 PTX, 2 ELF;
/// u16 version; u32 bytes of the header; u64 bytes behind it; ...}.
Result<std::string> ptx_of(const void* wrapper);

}  // namespace troupe::device::standin

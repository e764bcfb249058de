#pragma once

#include "base/result.h"

namespace troupe::device {

/// An entry of the module for GPUs by its name: of the shared library libtroupe_cuda.so, which has all of CUDA, beside
/// the program, in ../lib/troupe seen from there, or where the environment variable TROUPE_DEVICE_MODULE says. The
/// module is loaded by the first call and stays. Names end in a number, which grows with what the two must agree on.
/// Errors: failed_precondition (no module, or of another build).
Result<void*> module_entry(const char* name);

}  // namespace troupe::device

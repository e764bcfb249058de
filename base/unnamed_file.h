#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// A file of `bytes` zeros on the disk of `folder`, which is made where it is missing. It has no name and is gone with
/// its last descriptor and mapping, however the process ends. Its blocks are reserved: a full disk is an error here,
/// and no SIGBUS in a mapping later. Errors: those of file_error; failed_precondition (the folder lies in memory).
Result<FileDescriptor> make_unnamed_file(const std::string& folder, std::int64_t bytes);

}  // namespace troupe::base

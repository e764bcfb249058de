#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/convert/convert_dataset.h"

namespace troupe::data {

/// Codes the first `count` frames of the video at `source` anew into the MP4 file `out`, as `troupe convert dataset`
/// would with this encoding. Blocks. Errors: those of read_packet_table; data_loss (fewer frames, a damaged one),
/// invalid_argument (an encoding that this FFmpeg does not take), failed_precondition, resource_exhausted.
Result<void> recode_clip(const std::string& source, std::int64_t count, const ConvertEncoding& encoding,
                         const std::string& out);

}  // namespace troupe::data

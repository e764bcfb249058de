#pragma once

#include "base/result.h"
#include "data/video/ffmpeg.h"
#include "data/video/open_file.h"
#include "image/video_frame.h"

namespace troupe::data {

/// The planes of a decoded frame; valid as long as `frame`. Internal to ClipDecoder.
/// Errors: invalid_argument (not 8-bit 4:2:0, a colour matrix other than BT.601 and BT.709), data_loss (not the size
///         that the container states).
Result<Yuv420View> planes_of(const OpenFile& file, const AVFrame& frame);

}  // namespace troupe::data

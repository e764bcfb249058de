#pragma once

#include <cstdint>

#include "data/video/still_image.h"
#include "image/video_frame.h"

namespace troupe::data {

/// Pixels that pictures of a report are wide, at most.
inline constexpr std::int64_t kPictureWidth = 160;

/// The frame shrunk by a whole factor to at most kPictureWidth, each pixel the mean of a block.
StillImage shrink(const Rgb8View& in);

}  // namespace troupe::data

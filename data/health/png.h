#pragma once

#include <string>

#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::data {

/// The bytes of a PNG file of an RGB image. Errors: internal (FFmpeg has no PNG encoder or refuses the size).
Result<std::string> encode_png(const Rgb8View& image);

}  // namespace troupe::data

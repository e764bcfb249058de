#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "data/image/video_frame.h"

namespace troupe::data {

/// The bytes of a PNG file of an RGB image. Errors: internal (FFmpeg has no PNG encoder or refuses the size).
Result<std::string> encode_png(const Rgb8View& image);

/// Base64 (RFC 4648) of the bytes, on one line.
std::string base64(std::string_view bytes);

}  // namespace troupe::data

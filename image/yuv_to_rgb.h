#pragma once

#include <cstddef>
#include <cstdint>

#include "image/video_frame.h"

namespace troupe::image {

/// Planar 4:2:0 to packed RGB in integers, bit for bit what swscale's unscaled path gives on x86 (docs/video.md).
///     y = ((8Y - oy) * cy) >> 16;  u = 8U - 1024;  v = 8V - 1024          (>> rounds towards minus infinity)
///     R = clip(y + ((v * crv) >> 16));  G = clip(y + ((u * cgu) >> 16) + ((v * cgv) >> 16));  B = clip(y + ((u *
///     cbu) >> 16))
/// Each 2x2 block shares one chroma sample; nothing is interpolated.
///
/// `rgb` receives height rows of 3 * width bytes, `stride` bytes apart. Reads and writes stay inside the two frames.
/// Coefficients (oy, cy, crv, cgu, cgv, cbu) of BT.601 limited: 128, 9539, 13075, -3209, -6660, 16525. Source: swscale
/// (FFmpeg 5.1) measured byte for byte; the other sets follow from the same rounding of ITU-R BT.601 and BT.709.
/// Pure; any thread.
void yuv420_to_rgb(const Yuv420View& frame, std::uint8_t* rgb, std::ptrdiff_t stride);

/// Packed RGB to planar 4:2:0, BT.601 limited range, chroma averaged over each 2x2 block. For encoding.
/// `height` and `width` of `rgb` must be even. Planes: `y` width * height bytes, `u` and `v` a quarter of that,
/// rows are the given strides apart, in bytes. The inverse only up to rounding and averaging. Pure; any thread.
void rgb_to_yuv420(const Rgb8View& rgb, std::uint8_t* y, std::ptrdiff_t y_stride, std::uint8_t* u,
                   std::ptrdiff_t u_stride, std::uint8_t* v, std::ptrdiff_t v_stride);

}  // namespace troupe::image

#pragma once

#include <span>

#include "image/augmentation.h"
#include "image/pixel.h"

namespace troupe::image {

/// Colour jitter of one frame, in place, as torchvision's ColorJitter does it on float images. The operations are
/// applied in the order of jitter.order; each blend is clamped to [0, 1]:
///     brightness x * b;   contrast x * c + mean(gray) * (1 - c);   saturation x * s + gray * (1 - s)
///     hue H + h of HSV;   gray = 0.2989 R + 0.587 G + 0.114 B, the mean over this frame as it is at that point
///
/// The three planes are one frame, row-major, of equal length and with values in [0, 1]. Pure; any thread. Arithmetic
/// is float32; the mean is summed in double, so that it does not depend on how the loop is vectorised.
void apply_jitter(std::span<float> red, std::span<float> green, std::span<float> blue, const ColorJitter& jitter);

/// The same factors as the loops over pixels take them: in float32, each rounded once.
/// The GPU kernel gets them too, so that both give the same bytes.
JitterFactors jitter_factors(const ColorJitter& jitter);

}  // namespace troupe::image

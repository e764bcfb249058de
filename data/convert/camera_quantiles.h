#pragma once

// Internal to data/convert: quantiles of a camera's pixels over the whole output.
#include <string>

#include "base/result.h"
#include "data/convert/write_files.h"
#include "data/lerobot/image_sums.h"

namespace troupe::data {

/// Counts all pixels of at most 1000 frames of a camera of dtype video or image, evenly spaced over the rows of the
/// output, as its sources have them. Empty where a frame has another format than 8-bit 4:2:0. The counts do not depend
/// on the number of threads. Errors: data_loss (a frame that cannot be decoded), those of read_image_cells.
Result<ImageSums> sample_camera(const ConvertContext& context, const std::string& camera);

}  // namespace troupe::data

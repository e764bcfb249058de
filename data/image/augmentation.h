#pragma once

#include <array>
#include <cstdint>

#include "configs/data_config.h"

namespace troupe {

/// Factors of one colour jitter; the operations are applied in list order (color_jitter.h).
struct ColorJitter {
  enum Operation : std::uint8_t { brightness = 0, contrast = 1, saturation = 2, hue = 3 };
  std::array<std::uint8_t, 4> order{};  ///< the first `operations` entries count
  std::int64_t operations = 0;          ///< 0: no jitter
  double brightness_factor = 1, contrast_factor = 1, saturation_factor = 1;
  double hue_shift = 0;  ///< turns
};

/// What is done to every frame and every view of one sample: which part is kept, and how its colours change.
struct ImageAugmentation {
  std::int64_t top = 0, left = 0;      ///< pixels of the source
  std::int64_t height = 0, width = 0;  ///< pixels kept: int(source * crop)
  ColorJitter jitter{};
};

/// Random crop place and jitter of training sample `position`, a pure function of its arguments: crop from stream 0, a
/// permutation of the four operations and then b, c, s, h from stream 1 (data.md 4.4). An operation of range 0 is
/// left out.
ImageAugmentation draw_augmentation(std::uint64_t seed, std::uint64_t position, const ImageConfig& config,
                                    std::int64_t source_height, std::int64_t source_width);

/// Evaluation: centre crop, halves rounded to even, no jitter.
ImageAugmentation centre_augmentation(const ImageConfig& config, std::int64_t source_height, std::int64_t source_width);

}  // namespace troupe

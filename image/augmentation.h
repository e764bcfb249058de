#pragma once

#include <array>
#include <cstdint>

#include "configs/data_config.h"

namespace troupe::image {

/// Factors of one colour jitter; the operations are applied in list order (color_jitter.h).
struct ColorJitter {
  enum Operation : std::uint8_t { brightness = 0, contrast = 1, saturation = 2, hue = 3 };
  /// Values of Operation; the first `operations` entries count.
  std::array<std::uint8_t, 4> order{};
  /// How many operations are applied; 0: no jitter.
  std::int64_t operations = 0;
  /// b, c and s of apply_jitter; 1 changes nothing.
  double brightness_factor = 1, contrast_factor = 1, saturation_factor = 1;
  /// h of apply_jitter, in turns of the hue circle; 0 changes nothing.
  double hue_shift = 0;
};

/// What is done to every frame and every view of one sample: which part is kept, and how its colours change. All frames
/// of a sample share it, so that motion between frames stays motion.
struct ImageAugmentation {
  /// First row and column of the source that are kept, pixels.
  std::int64_t top = 0, left = 0;
  /// Pixels kept: int(source side * data.image.crop), at least 1.
  std::int64_t height = 0, width = 0;
  ColorJitter jitter{};
};

/// Random crop place and jitter of training sample `position`, a pure function of its arguments. CounterRng (base/
/// random.h) keyed by (seed, position): stream 0 draws the crop, top uniform in [0, source_height - height], then left;
/// stream 1 draws a permutation of the four operations (Fisher-Yates), then
///     b, c, s in [max(0, 1 - range), 1 + range),   h in [-hue, hue)
/// with the ranges of data.image. Every factor is drawn; an operation of range 0 is then left out, so that switching
/// one off leaves the others as they were.
ImageAugmentation draw_augmentation(std::uint64_t seed, std::uint64_t position, const ImageConfig& config,
                                    std::int64_t source_height, std::int64_t source_width);

/// Evaluation: centre crop, top = (source_height - height) / 2 and left alike, halves rounded to even; no jitter. Pure.
ImageAugmentation centre_augmentation(const ImageConfig& config, std::int64_t source_height, std::int64_t source_width);

}  // namespace troupe::image

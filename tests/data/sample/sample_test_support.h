#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "data/sample/sample_builder.h"

namespace troupe::data {

/// Bytes of the prompt as ids, and a mask of its length.
inline Result<void> bytes_as_tokens(const std::string& prompt, std::span<std::int64_t> ids,
                                    std::span<std::int64_t> mask) {
  for (std::size_t i = 0; i < std::min(prompt.size(), ids.size()); ++i) {
    ids[i] = prompt[i];
    mask[i] = 1;
  }
  return {};
}

/// Leaves images as they are: nothing of what a position draws.
inline void without_augmentation(ImageConfig& image) {
  image.crop = 1;
  image.brightness = image.contrast = image.saturation = image.hue = 0;
}

}  // namespace troupe::data

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::data {

/// Pixels of an image.
struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// What the header of a PNG (IHDR) or JPEG image (its frame header) says of its size; nothing is decoded. Nothing for
/// other bytes, or where the header is cut off.
std::optional<ImageSize> still_image_size(std::span<const std::byte> bytes);

}  // namespace troupe::data

#include "data/video/image_size.h"

#include <algorithm>
#include <initializer_list>

namespace troupe::data {

namespace {

/// A big-endian number of `bytes` bytes; requires them to be there.
std::int64_t big_endian(std::span<const std::byte> from, std::size_t at, std::size_t bytes) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::int64_t>(from[at + i]);
  return value;
}

bool has_magic(std::span<const std::byte> bytes, std::initializer_list<unsigned char> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin(),
                                                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

/// Segments are FF, a marker, and a length that counts itself; a frame header is one of SOF0 to SOF15.
std::optional<ImageSize> jpeg_size(std::span<const std::byte> bytes) {
  for (std::size_t at = 2; at + 9 <= bytes.size();) {
    if (bytes[at] != std::byte{0xFF}) return std::nullopt;
    const auto marker = std::to_integer<int>(bytes[at + 1]);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) return ImageSize{big_endian(bytes, at + 5, 2), big_endian(bytes, at + 7, 2)};
    at += 2 + static_cast<std::size_t>(big_endian(bytes, at + 2, 2));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ImageSize> still_image_size(std::span<const std::byte> bytes) {
  constexpr std::size_t kPngHeader = 24;  // signature, length and name of IHDR, width, height
  if (has_magic(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'}) && bytes.size() >= kPngHeader)
    return ImageSize{big_endian(bytes, 20, 4), big_endian(bytes, 16, 4)};
  if (has_magic(bytes, {0xFF, 0xD8, 0xFF})) return jpeg_size(bytes);
  return std::nullopt;
}

}  // namespace troupe::data

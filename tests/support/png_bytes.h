#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// What a PNG's header says about its samples. Source: ISO/IEC 15948 table 11.1.
enum class PngColor : std::uint8_t { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgba = 6 };

namespace png {

inline void put_u32(std::string& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(v >> shift);
}

inline std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

inline void put_chunk(std::string& out, const std::string& type, const std::string& data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  out += type + data;
  put_u32(out, crc32(type + data));
}

/// A zlib stream of stored blocks.
inline std::string stored(const std::string& data) {
  std::string out = "\x78\x01";
  std::uint32_t a = 1, b = 0;
  for (const char c : data) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  for (std::size_t at = 0; at == 0 || at < data.size(); at += 65535) {
    const std::size_t size = std::min<std::size_t>(65535, data.size() - at);
    out += static_cast<char>(at + size >= data.size() ? 1 : 0);
    out += {static_cast<char>(size), static_cast<char>(size >> 8), static_cast<char>(~size),
            static_cast<char>(~size >> 8)};
    out += data.substr(at, size);
  }
  put_u32(out, b << 16 | a);
  return out;
}

}  // namespace png

/// A PNG file. `rows` holds the packed rows as the format wants them, without filter bytes; `palette` R, G, B triples.
inline std::string png_bytes(std::uint32_t width, std::uint32_t height, PngColor color, int bit_depth,
                             const std::string& rows, const std::string& palette = {}) {
  std::string out = "\x89PNG\r\n\x1A\n", header, data;
  png::put_u32(header, width);
  png::put_u32(header, height);
  header += {static_cast<char>(bit_depth), static_cast<char>(color), 0, 0, 0};
  png::put_chunk(out, "IHDR", header);
  if (!palette.empty()) png::put_chunk(out, "PLTE", palette);
  const std::size_t row = rows.size() / height;
  for (std::size_t y = 0; y < height; ++y) data += '\0' + rows.substr(y * row, row);
  png::put_chunk(out, "IDAT", png::stored(data));
  png::put_chunk(out, "IEND", "");
  return out;
}

}  // namespace troupe::testing

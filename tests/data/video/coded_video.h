#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "data/video/clip_decoder.h"
#include "data/video/packet_table.h"
#include "data/video/video_encoder.h"
#include "tests/data/video/video_test_support.h"

namespace troupe::data {

/// A video whose frames all differ: a moving texture, with noise of that amplitude. 64x48 unless said otherwise.
inline void encode_texture(const std::string& path, std::int64_t frames, VideoEncoderOptions options,
                           std::uint64_t noise = 0) {
  if (options.width == 0) options.width = 64, options.height = 48;
  options.fps = 20;
  auto video = VideoEncoder::open(path, options);
  const auto bytes = static_cast<std::size_t>(3 * options.width * options.height);
  for (std::int64_t k = 0; k < frames; ++k) {
    std::vector<std::uint8_t> rgb(bytes);
    for (std::int64_t y = 0; y < options.height; ++y) {
      for (std::int64_t x = 0; x < 3 * options.width; ++x) {
        rgb[static_cast<std::size_t>(y * 3 * options.width + x)] = static_cast<std::uint8_t>(
            (x / 3 + 2 * k) * 5 % 97 + (y + k) * 3 % 89 + (x % 3) * 20 +
            static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(y * 7919 + x + k)) % (noise + 1)));
      }
    }
    ASSERT_TRUE((*video)->write({rgb.data(), options.height, options.width, 3 * options.width}));
  }
  ASSERT_EQ((*video)->finish().value(), frames);
}

inline std::vector<std::int64_t> stepped(std::int64_t first, std::int64_t step, std::int64_t count) {
  std::vector<std::int64_t> frames(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) frames[static_cast<std::size_t>(i)] = first + i * step;
  return frames;
}

/// Hashes of the planes of chosen frames, in order.
inline Result<std::vector<std::string>> yuv_hashes(ClipDecoder& decoder, const std::string& path,
                                                   const std::vector<std::int64_t>& frames,
                                                   const std::vector<std::int64_t>& block = {},
                                                   ClipDecoder::Deadline deadline = soon()) {
  std::vector<std::string> hashes;
  TROUPE_TRY(decoder.read_yuv(
      path, frames,
      [&](std::size_t i, const Yuv420View& frame) -> Result<void> {
        if (i == 0) hashes.clear();  // a retry starts over
        EXPECT_EQ(i, hashes.size());
        hashes.push_back(xxh64_hex(packed(frame)));
        return {};
      },
      deadline, block));
  return hashes;
}

/// Overwrites the bytes of a coded frame behind its first six.
inline void damage_frame(const std::string& path, std::int64_t rank) {
  const auto table = read_packet_table(path, false, soon());
  auto bytes = text_of(path);
  const VideoSample& hit =
      (*table)->samples[static_cast<std::size_t>((*table)->decode_of_rank[static_cast<std::size_t>(rank)])];
  std::fill_n(bytes.begin() + hit.offset + 6, hit.size - 6, static_cast<char>(0xFF));
  write_bytes(path, bytes);
}

}  // namespace troupe::data

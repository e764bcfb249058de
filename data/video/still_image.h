#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::data {

/// A packed RGB image that owns its bytes.
struct StillImage {
  /// Size in pixels.
  std::int64_t height = 0, width = 0;
  /// Height x width x 3.
  std::vector<std::uint8_t> rgb;
  /// Valid while this object lives and is not changed.
  Rgb8View view() const { return {rgb.data(), height, width, static_cast<std::ptrdiff_t>(3 * width)}; }
};

/// Decodes PNG and JPEG images that are held in memory. Keeps its codecs between calls.
/// PNG: the file's own samples for RGB; grey is repeated, palettes are looked up, alpha is dropped. JPEG: full-range
/// BT.601, chroma interpolated with weights 3/4 and 1/4 (Source: ITU-T T.871), as libjpeg does by default.
/// Not thread-safe: one thread, one decoder.
class StillImageDecoder {
 public:
  StillImageDecoder();
  ~StillImageDecoder();
  StillImageDecoder(StillImageDecoder&&) noexcept;
  StillImageDecoder& operator=(StillImageDecoder&&) noexcept;

  /// Decodes into `out`, whose memory is reused. `name` says in errors what is decoded ("x.parquet row 7").
  /// Errors: invalid_argument (neither PNG nor JPEG, 16 bits a channel, more than 2^26 pixels, another pixel format),
  ///         data_loss (damaged or cut off). Every message starts with `name`.
  Result<void> decode(std::span<const std::byte> bytes, const std::string& name, StillImage& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same for one image, with a decoder of its own.
Result<StillImage> decode_still_image(std::span<const std::byte> bytes, const std::string& name);

}  // namespace troupe::data

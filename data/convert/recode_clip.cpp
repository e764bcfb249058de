#include "data/convert/recode_clip.h"

#include <memory>

#include "data/convert/frame_encoder.h"
#include "data/convert/frame_reader.h"
#include "data/convert/packet_copy.h"

namespace troupe::data {

Result<void> recode_clip(const std::string& source, std::int64_t count, const ConvertEncoding& encoding,
                         const std::string& out) {
  TROUPE_TRY(FrameEncoder::check(encoding));
  TROUPE_ASSIGN(const auto table, video_packets(source));
  TROUPE_ASSIGN(FrameReader reader, FrameReader::open(source, table, 0, count));
  std::unique_ptr<FrameEncoder> encoder;
  for (std::int64_t frame = 0; frame < count; ++frame) {
    TROUPE_ASSIGN(const AVFrame* const decoded, reader.next());
    if (encoder == nullptr) {
      TROUPE_ASSIGN(encoder, FrameEncoder::open(out, encoding, *decoded, FrameRate::of(table->fps)));
    }
    TROUPE_TRY(encoder->write(*decoded, frame == 0));
  }
  if (encoder != nullptr) TROUPE_TRY(encoder->finish());
  return {};
}

}  // namespace troupe::data

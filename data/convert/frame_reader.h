#pragma once

// Internal to data/convert: every frame of a span, decoded in presentation order.
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "data/convert/packet_copy.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

/// Decodes frames [first, first + count) from the key frame before them. Presentation order is the packet table's.
/// Not thread-safe; decodes on the calling thread.
class FrameReader {
 public:
  /// `table` is the packet table of the file at `path`. Errors: data_loss (the file has fewer frames, or the decoder
  /// refuses the stream), failed_precondition (FFmpeg has no decoder), resource_exhausted, those of PacketReader::open.
  static Result<FrameReader> open(const std::string& path, std::shared_ptr<const PacketTable> table, std::int64_t first,
                                  std::int64_t count);

  /// The next frame, valid until the next call; null at the end. Errors: data_loss (a frame is damaged or missing).
  Result<const AVFrame*> next();

 private:
  FrameReader(std::string path, std::shared_ptr<const PacketTable> table, PacketReader samples)
      : path_(std::move(path)), table_(std::move(table)), samples_(std::move(samples)) {}
  Result<void> seek(std::int64_t first);
  Result<void> feed();

  std::string path_;
  std::shared_ptr<const PacketTable> table_;
  PacketReader samples_;
  AvCodecContext codec_;
  AvFrame frame_{av_frame_alloc()};
  AvPacket packet_{av_packet_alloc()};
  std::size_t at_ = 0;
  std::int64_t next_ = 0, end_ = 0;
  bool flushed_ = false;
};

/// XXH3-64 over a frame's visible samples, whatever the padding of its rows.
std::uint64_t frame_hash(const AVFrame& frame);

}  // namespace troupe::data

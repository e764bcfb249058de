#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "base/result.h"
#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// Which unit decodes.
enum class DecoderBackend : std::uint8_t {
  /// FFmpeg's software decoders, on the calling thread.
  cpu,
  /// The GPU's decoder (nvdec.h).
  nvdec,
};

/// Open codec contexts by codec, size, reordering and extradata, most recently used first, at most 8. Internal to
/// ClipDecoder; not thread-safe.
class CodecCache {
 public:
  explicit CodecCache(DecoderBackend backend) : backend_(backend) {}

  /// A context for the table's stream, holding no frame of an earlier read, on one thread. Valid until the next call
  /// of get or drop; leave it flushed, or drop it.
  /// Errors: invalid_argument when FFmpeg has no decoder for it or refuses its extradata; those of open_nvdec.
  Result<AVCodecContext*> get(const std::string& path, const PacketTable& table);
  /// Closes the table's context, so that the next get opens a fresh one.
  /// For a context that an error left in an unknown state.
  void drop(const PacketTable& table);
  /// Contexts opened since construction.
  std::int64_t opened() const noexcept { return opened_; }

 private:
  struct Entry {
    std::uint64_t key;
    AvCodecContext context;
  };
  const DecoderBackend backend_;
  std::list<Entry> entries_;
  std::int64_t opened_ = 0;
};

}  // namespace troupe::data

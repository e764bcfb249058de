#pragma once

// Internal to data/convert: an MP4 file with one video stream under construction.
#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/convert/rational.h"
#include "data/video/ffmpeg.h"

namespace troupe {

struct CloseMp4 {
  void operator()(AVFormatContext* context) const {
    avio_closep(&context->pb);
    avformat_free_context(context);
  }
};

/// FFmpeg's failure on a file as an Error: a full disk is resource_exhausted.
Error av_failure(const std::string& path, int code, const char* doing);

/// One video stream, index first, no times or versions of the writer: the same packets give the same bytes.
class Mp4Output {
 public:
  /// Writes the header. Units of packets are 1 / rate.
  static Result<Mp4Output> open(const std::string& path, const AVCodecParameters& codec, FrameRate rate);

  /// Writes a packet whose pts, dts and duration are in units of 1 / rate.
  Result<void> write(AVPacket& packet);
  Result<void> finish();

 private:
  std::string path_;
  std::unique_ptr<AVFormatContext, CloseMp4> context_;
  AVRational unit_{1, 1};
};

}  // namespace troupe

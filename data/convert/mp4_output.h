#pragma once

// Internal to data/convert: an MP4 file with one video stream under construction.
#include <string>

#include "base/result.h"
#include "data/convert/rational.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

/// FFmpeg's return value `code` as an Error "PATH: DOING failed: ...": resource_exhausted (disk, quota or memory),
/// failed_precondition (no permission, no such folder), data_loss (invalid data), else internal.
Error av_failure(const std::string& path, int code, const char* doing);

/// One video stream, index first, no times or versions of the writer: the same packets give the same bytes.
class Mp4Output {
 public:
  /// Creates or replaces the file and writes the header; `codec` is copied. Errors: those of av_failure.
  static Result<Mp4Output> open(const std::string& path, const AVCodecParameters& codec, FrameRate rate);

  /// Writes a packet whose pts, dts and duration are in units of 1 / rate.
  Result<void> write(AVPacket& packet);
  /// Writes the index, moves it to the front of the file (+faststart) and closes the file.
  Result<void> finish();

 private:
  std::string path_;
  AvOutput context_;
  AVRational unit_{1, 1};
};

}  // namespace troupe::data

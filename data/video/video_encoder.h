#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::data {

/// How frames are coded. Both sides must be even.
struct VideoEncoderOptions {
  /// Size of every frame in pixels; both even.
  std::int64_t width = 0, height = 0;
  /// Frames per second; frame i is shown at i / fps.
  double fps = 10;
  /// Frames from one key frame to the next.
  std::int64_t gop = 12;
  /// x264's constant quality, 0 (lossless) .. 51.
  std::int64_t crf = 18;
  /// B-frames in a row at most; 0: none, and one reference.
  std::int64_t b_frames = 0;
  /// The index before the frames; some recorders write it last.
  bool moov_first = true;
};

/// Writes an MP4 file: H.264 by libx264 where FFmpeg has it, else MPEG-4 part 2. yuv420p, BT.601 limited range, no
/// colour tags. The same frames and FFmpeg give the same bytes. Not thread-safe.
class VideoEncoder {
 public:
  /// Creates or replaces `path`. Errors: invalid_argument (odd or empty size), failed_precondition (cannot write),
  /// internal.
  static Result<std::unique_ptr<VideoEncoder>> open(const std::string& path, const VideoEncoderOptions& options);
  ~VideoEncoder();
  VideoEncoder(const VideoEncoder&) = delete;
  VideoEncoder& operator=(const VideoEncoder&) = delete;

  /// Appends one frame of the options' size. Errors: invalid_argument (another size), resource_exhausted (full disk),
  /// internal.
  Result<void> write(const Rgb8View& frame);
  /// Flushes the codec and writes the index; returns the frames written. A file without this call is not readable.
  Result<std::int64_t> finish();

 private:
  struct State;
  explicit VideoEncoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::data

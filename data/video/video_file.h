#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// What a video file holds, from its container; no header count is trusted.
struct VideoInfo {
  /// Size of every frame, pixels.
  std::int64_t width = 0;
  std::int64_t height = 0;
  /// Frames that are shown, counted in the packet table.
  std::int64_t frames = 0;
  /// Average rate of the container.
  double fps = 0;
  /// FFmpeg's name, such as "h264".
  std::string codec{};
  /// FFmpeg's name, such as "yuv420p"; training takes nothing else.
  std::string pix_fmt{};
  /// Frames are decoded in another order than they are shown in.
  bool has_b_frames = false;
  /// Frames are not equally spaced in time (D10).
  bool uneven = false;
  /// Time of the first frame shown; below 0 or a frame late is D10.
  double first_seconds = 0;
  /// Coded frames that an edit list hides (D10).
  std::int64_t hidden = 0;
};

/// What a packet table says of its file; pix_fmt only when the stream was inspected.
VideoInfo describe_video(const PacketTable& table);

/// Opens an MP4 file, counts its frames and checks that its sample table lies inside the file (D06).
/// Gives up after 10 s. Thread-safe.
/// Errors: not_found (missing, dangling link), invalid_argument (not a regular file), data_loss (zero bytes, moov
///         missing, truncated, no frame), deadline_exceeded. Every message starts with the path.
Result<VideoInfo> probe_video(const std::string& path);

/// Whether this FFmpeg has a decoder of the codec, by FFmpeg's name of it.
bool has_decoder(const std::string& codec);

/// Rows of an episode that have a frame: with one frame too many or too few at the tail, the smaller of both
/// (D07).
/// Errors: data_loss when they differ by more than one.
Result<std::int64_t> reconcile_frame_count(const std::string& path, std::int64_t rows, std::int64_t frames);

/// "5.1.9-0+deb12u1": FFmpeg as it is loaded.
const char* ffmpeg_version();

}  // namespace troupe::data

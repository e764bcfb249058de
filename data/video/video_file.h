#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/video/packet_table.h"

namespace troupe {

/// What a video file holds, from its container; no header count is trusted.
struct VideoInfo {
  std::int64_t width = 0;   ///< pixels
  std::int64_t height = 0;  ///< pixels
  std::int64_t frames = 0;  ///< pictures that are shown, counted in the packet table
  double fps = 0;           ///< average rate of the container
  std::string codec{};      ///< FFmpeg's name, such as "h264"
  std::string pix_fmt{};    ///< FFmpeg's name, such as "yuv420p"
  bool has_b_frames = false;
  bool uneven = false;       ///< pictures are not equally spaced in time (D10)
  double first_seconds = 0;  ///< time of the first picture shown; below 0 or a picture late is D10
  std::int64_t hidden = 0;   ///< coded pictures that an edit list hides (D10)
};

/// What a packet table says of its file; pix_fmt only when the stream was inspected.
VideoInfo describe_video(const PacketTable& table);

/// Opens an MP4 file, counts its pictures and checks that its sample table lies inside the file (data.md D06).
/// Gives up after 10 s. Thread-safe.
/// Errors: not_found (missing, dangling link), invalid_argument (not a regular file), data_loss (zero bytes, moov
///         missing, truncated, no picture), deadline_exceeded. Every message starts with the path.
Result<VideoInfo> probe_video(const std::string& path);

/// Rows of an episode that have a picture: with one picture too many or too few at the tail, the smaller of both
/// (data.md D07).
/// Errors: data_loss when they differ by more than one.
Result<std::int64_t> reconcile_frame_count(const std::string& path, std::int64_t rows, std::int64_t frames);

}  // namespace troupe

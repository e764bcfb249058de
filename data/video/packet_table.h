#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct AVCodecParameters;

namespace troupe {

/// One coded picture of a video stream, in decode order.
struct VideoSample {
  std::int64_t offset = 0;  ///< bytes from the start of the file
  std::int32_t size = 0;    ///< bytes
  std::int32_t rank = -1;   ///< presentation index; -1: an edit list hides it
  bool key = false;         ///< decoding may start here
};

/// Where a video file's coded pictures lie and in which order they are shown. Immutable once built.
struct PacketTable {
  std::vector<VideoSample> samples{};                ///< decode order
  std::vector<std::int32_t> decode_of_rank{};        ///< presentation index -> place in `samples`
  bool reordered = false;                            ///< decode order differs from presentation order (B-frames)
  bool one_ref = false;                              ///< every sample that is no key needs its key alone (proven)
  double fps = 0;                                    ///< average rate of the container
  bool uneven = false;                               ///< pictures are not equally spaced in time
  double first_seconds = 0;                          ///< time of the first picture shown
  std::string pix_fmt{};                             ///< filled when the stream was inspected, else empty
  std::shared_ptr<const AVCodecParameters> codec{};  ///< as the container gives it, extradata included
};

/// Facts that tell whether a file is still the one that was read before.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Identity of a regular, non-empty file.
/// Errors: not_found (missing, dangling link), invalid_argument (not a regular file), data_loss (zero bytes); all
///         name the file.
Result<FileIdentity> identify_video_file(const std::string& path);

/// Reads the sample table of the first video stream of an MP4 file: offsets, sizes and key flags from the demuxer's
/// index; presentation order is the stable sort by pts. Streams whose index cannot tell that order (B-frames,
/// fragments) are scanned once, packet headers only. `inspect` also determines the pixel format, which costs one
/// decoded picture.
///
/// Errors: those of identify_video_file; data_loss (moov missing, table points beyond the file, no picture),
///         deadline_exceeded.
Result<std::shared_ptr<const PacketTable>> read_packet_table(const std::string& path, bool inspect,
                                                             std::chrono::steady_clock::time_point deadline);

}  // namespace troupe

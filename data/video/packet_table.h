#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct AVCodecParameters;

namespace troupe::data {

/// Pixels of a side of a frame at most.
inline constexpr std::int64_t kLargestSide = 1 << 16;

/// One coded frame of a video stream, in decode order.
struct VideoSample {
  /// Bytes from the start of the file.
  std::int64_t offset = 0;
  /// Bytes of the coded frame.
  std::int32_t size = 0;
  /// Presentation index; -1: an edit list hides it.
  std::int32_t rank = -1;
  /// Decoding may start here: a sync sample of the container that is an entry point by its own bytes, where those were
  /// read (read_packet_table).
  bool key = false;
};

/// Where a video file's coded frames lie and in which order they are shown. Immutable once built.
struct PacketTable {
  /// Decode order.
  std::vector<VideoSample> samples{};
  /// Presentation index -> place in `samples`; its size is the number of frames that are shown.
  std::vector<std::int32_t> decode_of_rank{};
  /// Decode order differs from presentation order (B-frames).
  bool reordered = false;
  /// Every sample that is no key needs its key alone (proven).
  bool one_ref = false;
  /// Average rate of the container, frames per second.
  double fps = 0;
  /// Frames are not equally spaced in time.
  bool uneven = false;
  /// Time of the first frame shown, in seconds of the container.
  double first_seconds = 0;
  /// Filled when the stream was inspected, else empty.
  std::string pix_fmt{};
  /// As the container gives it, extradata included.
  std::shared_ptr<const AVCodecParameters> codec{};
};

/// Facts that tell whether a file is still the one that was read before.
struct FileIdentity {
  /// As stat gives them: bytes, and nanoseconds since 1970.
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0;
  /// Equal identities: the same file, not written to since.
  bool operator==(const FileIdentity&) const = default;
};

/// Identity of a regular, non-empty file.
/// Errors: not_found (missing, dangling link), invalid_argument (not a regular file), data_loss (zero bytes); all
///         name the file.
Result<FileIdentity> identify_video_file(const std::string& path);

/// Reads the sample table of the first video stream of an MP4 file: offsets, sizes and key flags from the demuxer's
/// index; presentation order is the stable sort by pts. Streams whose index cannot tell that order (B-frames,
/// fragments) are scanned once. `inspect` also determines the pixel format, which costs one decoded frame, and looks
/// whether five samples are where the index says.
/// A key flag is compared with the sample's own bytes (NalReader::entry_point) wherever the stream is scanned;
/// `check_keys` scans every stream.
///
/// Errors: those of identify_video_file; data_loss (moov missing, table points beyond the file, no frame, a codec or
///         size that is not known, no sample where there should be one),
///         deadline_exceeded.
Result<std::shared_ptr<const PacketTable>> read_packet_table(const std::string& path, bool inspect,
                                                             std::chrono::steady_clock::time_point deadline,
                                                             bool check_keys = false);

}  // namespace troupe::data

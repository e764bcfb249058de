#pragma once

// Internal to data/convert: coded frames moved from file to file without decoding.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "data/convert/rational.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// Coded frames samples[begin, end) of a table that are exactly the frames [first, first + count) in presentation
/// order and need no frame outside: they can be cut out of the file and put into another one.
struct PacketRun {
  std::size_t begin = 0, end = 0;
  /// Presentation index, in the source's file, of the first one shown.
  std::int64_t first = 0;
  std::int64_t bytes = 0;
  /// Frames by which decoding must run ahead of showing: 0 without B-frames. dts = pts - delay at the first frame.
  std::int64_t delay = 0;
};

/// Errors: failed_precondition with the reason why these frames are no such run (no key frame at the begin,
///         reordering across an end, frames hidden by an edit list); data_loss: the file has fewer frames.
Result<PacketRun> packet_run(const std::string& path, const PacketTable& table, std::int64_t first, std::int64_t count);

/// Sample table of a video file; waits at most a minute. Errors: those of read_packet_table.
Result<std::shared_ptr<const PacketTable>> video_packets(const std::string& path);

/// The same with the pixel format, which costs a decoded frame.
Result<std::shared_ptr<const PacketTable>> inspected_packets(const std::string& path);

/// A digest (XXH3-64, hex) of what the episodes of one MP4 file must have in common, since a track has one set of
/// parameters: codec, profile, extradata (its parameter sets), size, aspect ratio, colour tags.
std::string codec_identity(const PacketTable& table);

/// FFmpeg's short name, "h264".
std::string codec_name(const PacketTable& table);

/// Writes an MP4 file from runs of other files: frame i is shown at i / fps. The index comes first. Not thread-safe.
class PacketWriter {
 public:
  /// `like` gives the codec parameters; `delay` is the largest of the runs to come. Errors: failed_precondition,
  /// resource_exhausted, internal.
  static Result<std::unique_ptr<PacketWriter>> open(const std::string& path, const PacketTable& like, FrameRate rate,
                                                    std::int64_t delay);
  ~PacketWriter();
  PacketWriter(const PacketWriter&) = delete;
  PacketWriter& operator=(const PacketWriter&) = delete;

  /// Appends a run of `source`. Fault point convert.packet (subject: the path written).
  Result<void> append(const std::string& source, const PacketTable& table, const PacketRun& run);
  /// Writes the index and closes; returns the frames written.
  Result<std::int64_t> finish();

 private:
  struct State;
  explicit PacketWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reads single coded frames of a file with pread. Owns the file descriptor; read() may be called from any thread.
class PacketReader {
 public:
  static Result<PacketReader> open(const std::string& path);
  /// Fills exactly sample.size bytes. Errors: data_loss when the file ends before; those of file_error.
  Result<void> read(const VideoSample& sample, std::uint8_t* out) const;

 private:
  PacketReader(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  FileDescriptor fd_;
};

}  // namespace troupe::data

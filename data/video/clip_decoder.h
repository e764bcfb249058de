#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "data/video/packet_source.h"
#include "image/video_frame.h"

namespace troupe::data {

/// Reads chosen frames of MP4 files: H.264, AV1 (libdav1d) and whatever else FFmpeg decodes to 8-bit 4:2:0.
/// Each file is opened once and stays open with its packet table; codec contexts are shared by files of equal
/// extradata; only the bytes and frames that are needed are read and decoded. No call outlasts its deadline, not
/// even where a file system does not answer.
/// Not thread-safe: one thread, one decoder; codecs run on that thread. The algorithm is described in docs/video.md.
class ClipDecoder {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// Gets the frame at frames[i]; the view is valid during the call. An Error stops the read and is returned from it.
  using RgbSink = std::function<Result<void>(std::size_t i, const Rgb8View& frame)>;
  using YuvSink = std::function<Result<void>(std::size_t i, const Yuv420View& frame)>;

  /// How a decoder works; the defaults are those of data.decoder, without a clip cache.
  struct Options {
    /// Asked before a file's own tables are read.
    FindPacketTable find_table{};
    /// Files kept open, with their tables; at least 1.
    std::int64_t open_files = 128;
    /// Bound of the frames kept for a block's samples.
    std::int64_t shared_frame_bytes = std::int64_t{2} << 30;
    /// "cpu" or "nvdec".
    std::string backend = "cpu";
    /// Folder of decoded clips; empty: none.
    std::string clip_cache{};
    /// Bound of that folder, all processes together.
    std::int64_t clip_cache_bytes = std::int64_t{20} << 30;
    /// A clip that takes longer is logged and counted.
    std::chrono::milliseconds soft_limit{2000};
    /// Take bytes that are in the page cache without a hand-over to the reading thread.
    bool cached_reads = true;
  };

  /// Work done since construction.
  struct Counters {
    /// Coded frames given to a codec.
    std::int64_t samples_fed = 0;
    /// Coded frames left out because nothing refers to them and nobody wants them.
    std::int64_t samples_dropped = 0;
    /// Frames handed to sinks, repeats included.
    std::int64_t frames_delivered = 0;
    /// Second attempts after a decode error.
    std::int64_t retries = 0;
    /// Codec contexts and files opened: without a change of files both stop growing.
    std::int64_t contexts_opened = 0;
    std::int64_t files_opened = 0;
    /// Packet tables read from files.
    std::int64_t tables_read = 0;
    /// Packet tables that Options::find_table gave.
    std::int64_t tables_found = 0;
    /// Bytes of coded frames.
    std::int64_t bytes_read = 0;
    /// Frames taken from those kept for a block.
    std::int64_t shared_hits = 0;
    /// Frames looked for there in vain.
    std::int64_t shared_misses = 0;
    /// Frames taken from the clip cache.
    std::int64_t cache_hits = 0;
    /// Frames looked for there in vain.
    std::int64_t cache_misses = 0;
    /// Clips of it that were deleted because they were damaged.
    std::int64_t cache_damaged = 0;
    /// Reads beyond the soft limit.
    std::int64_t slow_clips = 0;
    /// Opening files, tables, bytes of coded frames and of cached clips.
    double read_seconds = 0;
    /// Time inside the codec.
    double decode_seconds = 0;
  };

  ClipDecoder();
  /// Opens nothing: a back end that the machine lacks is an error of the first read.
  explicit ClipDecoder(Options options);
  ~ClipDecoder();
  ClipDecoder(const ClipDecoder&) = delete;
  ClipDecoder& operator=(const ClipDecoder&) = delete;

  /// Calls `sink` once for every i, in ascending order of frames[i]. `frames` are presentation indices, ascending,
  /// repeats allowed. A decode error is tried once more with a fresh file, table and codec; the sink then sees the
  /// frames from the start again.
  ///
  /// Errors: invalid_argument (unsorted or out of range, unsupported codec or pixel format, a back end that this
  ///         machine lacks), not_found, data_loss (damaged file, corrupt or missing frame; it names the group of
  ///         frames), deadline_exceeded; the message starts with the path. A sink's error comes back as is.
  /// Faults: point "decode", subject the file's stem, before the file is looked at; point "read", same subject, on the
  ///         reading thread before it opens a file and before it reads from one.
  Result<void> read(const std::string& path, std::span<const std::int64_t> frames, const RgbSink& sink,
                    Deadline deadline);
  /// The same with the decoder's own planes. `block_frames`: what all samples of a locality block want of this file,
  /// ascending; `frames` is a part of it. The union is decoded once and kept, so that the block's other samples cost
  /// no decoding. Empty: nothing is kept.
  Result<void> read_yuv(const std::string& path, std::span<const std::int64_t> frames, const YuvSink& sink,
                        Deadline deadline, std::span<const std::int64_t> block_frames = {});

  /// Valid while the decoder lives; for its thread only.
  const Counters& counters() const noexcept;

 private:
  struct State;
  struct Request;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::data

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "data/image/video_frame.h"
#include "data/video/packet_source.h"

namespace troupe {

/// Reads chosen pictures of MP4 files: H.264, AV1 (libdav1d) and whatever else FFmpeg decodes to 8-bit 4:2:0.
/// Each file is opened once and stays open with its packet table; codec contexts are shared by files of equal
/// extradata; only the bytes and pictures that are needed are read and decoded. No call outlasts its deadline, not
/// even where a file system does not answer.
/// Not thread-safe: one thread, one decoder; codecs run on that thread. The algorithm is described in docs/video.md.
class ClipDecoder {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// Gets picture frames[i]; the view is valid during the call. An Error stops the read and is returned from it.
  using RgbSink = std::function<Result<void>(std::size_t i, const Rgb8View& picture)>;
  using YuvSink = std::function<Result<void>(std::size_t i, const Yuv420View& picture)>;

  /// How a decoder works; the defaults are those of data.decoder, without a clip cache.
  struct Options {
    FindPacketTable find_table{};                             ///< asked before a file's own tables are read
    std::int64_t open_files = 128;                            ///< files kept open, with their tables; at least 1
    std::int64_t shared_frame_bytes = std::int64_t{2} << 30;  ///< bound of the pictures kept for a block's samples
    std::string backend = "cpu";                              ///< "cpu" or "nvdec"
    std::string clip_cache{};                                 ///< folder of decoded clips; empty: none
    std::int64_t clip_cache_bytes = std::int64_t{20} << 30;   ///< bound of that folder, all processes together
    std::chrono::milliseconds soft_limit{2000};               ///< a clip that takes longer is logged and counted
    bool cached_reads = true;  ///< take bytes that are in the page cache without a hand-over to the reading thread
  };

  /// Work done since construction.
  struct Counters {
    std::int64_t samples_fed = 0;      ///< coded pictures given to a codec
    std::int64_t samples_dropped = 0;  ///< left out because nothing refers to them and nobody wants them
    std::int64_t pictures_delivered = 0;
    std::int64_t retries = 0;  ///< second attempts after a decode error
    std::int64_t contexts_opened = 0;
    std::int64_t files_opened = 0;
    std::int64_t tables_read = 0;    ///< packet tables read from files
    std::int64_t tables_found = 0;   ///< packet tables that Options::find_table gave
    std::int64_t bytes_read = 0;     ///< of coded pictures
    std::int64_t shared_hits = 0;    ///< pictures taken from those kept for a block
    std::int64_t shared_misses = 0;  ///< pictures looked for there in vain
    std::int64_t cache_hits = 0;     ///< pictures taken from the clip cache
    std::int64_t cache_misses = 0;   ///< pictures looked for there in vain
    std::int64_t cache_damaged = 0;  ///< clips of it that were deleted because they were damaged
    std::int64_t slow_clips = 0;     ///< reads beyond the soft limit
    double read_seconds = 0;         ///< opening files, tables, bytes of coded pictures and of cached clips
    double decode_seconds = 0;       ///< in the codec
  };

  ClipDecoder();
  explicit ClipDecoder(Options options);
  ~ClipDecoder();
  ClipDecoder(const ClipDecoder&) = delete;
  ClipDecoder& operator=(const ClipDecoder&) = delete;

  /// Calls `sink` once for every i, in ascending order of frames[i]. `frames` are presentation indices, ascending,
  /// repeats allowed. A decode error is tried once more with a fresh file, table and codec; the sink then sees the
  /// pictures from the start again.
  ///
  /// Errors: invalid_argument (unsorted or out of range, unsupported codec or pixel format, a back end that this
  ///         machine lacks), not_found, data_loss (damaged file, corrupt or missing picture; it names the group of
  ///         pictures), deadline_exceeded; the message starts with the path. A sink's error comes back as is.
  /// Faults: point "decode", subject the file's stem, before the file is looked at; point "read", same subject, on the
  ///         reading thread before it opens a file and before it reads from one.
  Result<void> read(const std::string& path, std::span<const std::int64_t> frames, const RgbSink& sink,
                    Deadline deadline);
  /// The same with the decoder's own planes. `block_frames`: what all samples of a locality block want of this file,
  /// ascending; `frames` is a part of it. The union is decoded once and kept, so that the block's other samples cost
  /// no decoding. Empty: nothing is kept.
  Result<void> read_yuv(const std::string& path, std::span<const std::int64_t> frames, const YuvSink& sink,
                        Deadline deadline, std::span<const std::int64_t> block_frames = {});

  const Counters& counters() const noexcept;

 private:
  struct State;
  struct Request;
  std::unique_ptr<State> state_;
};

}  // namespace troupe

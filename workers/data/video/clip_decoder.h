#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "workers/data/image/video_frame.h"

namespace troupe {

/// Reads chosen pictures of MP4 files: H.264, AV1 (libdav1d) and whatever else FFmpeg decodes to 8-bit 4:2:0.
/// Keeps up to 8 codec contexts (by codec, size and extradata) and 64 packet tables, so that a sample's next file
/// costs no setup.
/// Not thread-safe: one thread, one decoder; codecs run on that thread. The algorithm is described in docs/video.md.
class ClipDecoder {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// Gets picture frames[i]; the view is valid during the call. An Error stops the read and is returned from it.
  using RgbSink = std::function<Result<void>(std::size_t i, const Rgb8View& picture)>;
  using YuvSink = std::function<Result<void>(std::size_t i, const Yuv420View& picture)>;

  /// Work done since construction.
  struct Counters {
    std::int64_t samples_fed = 0;      ///< coded pictures given to a codec
    std::int64_t samples_dropped = 0;  ///< left out because nothing refers to them and nobody wants them
    std::int64_t pictures_delivered = 0;
    std::int64_t retries = 0;  ///< second attempts after a decode error
    std::int64_t contexts_opened = 0;
    std::int64_t tables_read = 0;
  };

  ClipDecoder();
  ~ClipDecoder();
  ClipDecoder(const ClipDecoder&) = delete;
  ClipDecoder& operator=(const ClipDecoder&) = delete;

  /// Calls `sink` once for every i, in ascending order of frames[i]. `frames` are presentation indices, ascending,
  /// repeats allowed. A decode error is tried once more with a fresh table and codec; the sink then sees the pictures
  /// from the start again.
  ///
  /// Errors: invalid_argument (unsorted or out of range, unsupported codec or pixel format), not_found, data_loss
  ///         (damaged file, corrupt or missing picture), deadline_exceeded; the message starts with the path. A
  ///         sink's error comes back as is.
  /// Fault:  point "decode", subject the file's stem; it fires before the file is opened.
  Result<void> read(const std::string& path, std::span<const std::int64_t> frames, const RgbSink& sink,
                    Deadline deadline);
  /// The same with the decoder's own planes.
  Result<void> read_yuv(const std::string& path, std::span<const std::int64_t> frames, const YuvSink& sink,
                        Deadline deadline);

  const Counters& counters() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe

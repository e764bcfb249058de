#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/video/ffmpeg.h"
#include "data/video/open_file.h"

namespace troupe::data {

/// Reads coded frames of one file in the order in which they are fed. Neighbouring ones come with one pread into a
/// reused buffer, and packets refer to that buffer instead of copying it. Bytes in the page cache are taken by the
/// calling thread; all others are read, one piece ahead, by the reading thread. Internal to ClipDecoder.
class SampleReader {
 public:
  struct Options {
    /// Try the page cache on the calling thread first.
    bool cached_reads = true;
    /// When next() gives up.
    std::chrono::steady_clock::time_point deadline;
  };

  /// `order`: places in the table's samples, each fed once. The thread outlives the reader.
  /// Nothing is read before the first next().
  SampleReader(std::shared_ptr<const OpenFile> file, ReadThread& thread, std::vector<std::int32_t> order,
               Options options);
  ~SampleReader();
  SampleReader(const SampleReader&) = delete;
  SampleReader& operator=(const SampleReader&) = delete;

  /// The bytes of the next sample of the order; valid until the next call.
  /// Errors: data_loss (the file ends before, the disk fails), deadline_exceeded, resource_exhausted.
  Result<std::span<const std::uint8_t>> next();
  /// Makes `packet` a reference to the bytes that next() gave last. Codecs other than H.264, HEVC and AV1 get a copy
  /// that is followed by zeros, which their parsers rely on.
  Result<void> fill(AVPacket& packet);

  /// Bytes read, gaps between samples included, and seconds that next() waited for them.
  std::int64_t bytes_read() const noexcept { return bytes_read_; }
  double seconds() const noexcept { return seconds_; }

 private:
  /// Neighbouring samples that come with one read: at most 1 MiB unless one sample is larger, gaps up to 64 KiB.
  struct Piece {
    /// Places in order_.
    std::size_t first = 0, last = 0;
    std::int64_t offset = 0, bytes = 0;
  };
  struct Buffer;
  struct Pending;

  const VideoSample& sample(std::size_t place) const;
  void plan();
  Result<void> load(std::size_t piece);
  Result<bool> load_cached(const Piece& piece);
  Result<std::shared_ptr<Pending>> start(const Piece& piece);

  const std::shared_ptr<const OpenFile> file_;
  ReadThread& thread_;
  const std::vector<std::int32_t> order_;
  const Options options_;
  std::vector<Piece> pieces_;
  /// Of the sample that next() gives next.
  std::size_t place_ = 0;
  /// That is loaded, when buffer_ is set.
  std::size_t piece_ = 0;
  std::shared_ptr<Buffer> buffer_;
  /// The piece after piece_, being read.
  std::shared_ptr<Pending> ahead_;
  std::span<const std::uint8_t> current_;
  std::int64_t bytes_read_ = 0;
  double seconds_ = 0;
};

}  // namespace troupe::data

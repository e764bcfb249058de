#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/video/decode_plan.h"
#include "data/video/ffmpeg.h"
#include "data/video/nal_units.h"
#include "data/video/open_file.h"
#include "data/video/sample_reader.h"

namespace troupe::data {

/// One attempt to decode chosen frames of an open file: the clip algorithm of docs/video.md. Internal to ClipDecoder.
class ClipRead {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// Gets a wanted frame once, in presentation order, with its presentation index as pts; it may take a reference.
  using OnFrame = std::function<Result<void>(AVFrame& frame)>;

  /// Coded frames given to the codec and left out, their bytes, and the time of reading and decoding.
  struct Counters {
    std::int64_t fed = 0, dropped = 0, bytes = 0;
    double read_seconds = 0, decode_seconds = 0;
  };

  /// `ranks`: ascending presentation indices inside the file, repeats allowed. All references outlive the object.
  ClipRead(std::shared_ptr<const OpenFile> file, std::span<const std::int64_t> ranks, ReadThread& thread,
           bool cached_reads, Deadline deadline);

  /// Feeds what is needed and leaves the codec flushed; after an error the codec holds frames of a broken read.
  /// Errors: data_loss, deadline_exceeded, resource_exhausted, invalid_argument (the GPU refuses the stream), each
  ///         with the path; those of on_frame as they are, and then sink_failed() is true.
  Result<void> run(AVCodecContext& codec, const OnFrame& on_frame);

  const Counters& counters() const noexcept { return counters_; }
  /// True when run() ended with an error of on_frame: a second attempt would not help.
  bool sink_failed() const noexcept { return sink_failed_; }
  /// Presentation index of the key frame whose group was fed last.
  std::int64_t group() const noexcept { return group_; }

 private:
  bool wanted(std::int64_t rank) const;
  Result<void> feed(std::int32_t index);
  Result<void> enter(std::int32_t index, std::span<const std::uint8_t> sample);
  Result<void> receive();
  Result<void> take();
  Result<void> drain();
  Error missing(std::int64_t rank) const;

  const std::shared_ptr<const OpenFile> file_;
  const std::span<const std::int64_t> ranks_;
  const Deadline deadline_;
  const NalReader nal_;
  std::vector<DecodeRun> runs_;
  SampleReader reader_;
  AVCodecContext* codec_ = nullptr;
  /// First sample of the run that is being fed, and whether that is one of an open group.
  std::int32_t run_first_ = 0;
  bool open_group_ = false;
  const OnFrame* on_frame_ = nullptr;
  AvPacket packet_{av_packet_alloc()};
  AvFrame frame_{av_frame_alloc()};
  /// Entries of ranks_ that are done.
  std::size_t delivered_ = 0;
  std::int64_t group_ = 0;
  bool sink_failed_ = false;
  double sink_seconds_ = 0;
  Counters counters_;
};

}  // namespace troupe::data

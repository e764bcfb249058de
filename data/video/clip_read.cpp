#include "data/video/clip_read.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "base/trace.h"
#include "data/video/nvdec.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

ClipRead::ClipRead(std::shared_ptr<const OpenFile> file, std::span<const std::int64_t> ranks, ReadThread& thread,
                   bool cached_reads, Deadline deadline)
    : file_(std::move(file)),
      ranks_(ranks),
      deadline_(deadline),
      nal_(*file_->table->codec),
      runs_(plan_runs(*file_->table, ranks)),
      reader_(file_, thread, feed_order(*file_->table, runs_, ranks), {cached_reads, deadline}) {}

bool ClipRead::wanted(std::int64_t rank) const { return std::binary_search(ranks_.begin(), ranks_.end(), rank); }

Result<void> ClipRead::run(AVCodecContext& codec, const OnFrame& on_frame) {
  const Span span("decode");
  codec_ = &codec;
  on_frame_ = &on_frame;
  const auto begin = Clock::now();
  const auto decode = [&]() -> Result<void> {
    const bool h264 = file_->table->codec->codec_id == AV_CODEC_ID_H264;
    if (h264 && ranks_.front() < file_->table->samples.front().rank) return missing(ranks_.front());
    bool first = true;
    for (const DecodeRun& r : runs_) {
      if (!first) TROUPE_TRY(drain());
      first = false;
      run_first_ = r.first;
      for (const std::int32_t i : feed_order(*file_->table, {&r, 1}, ranks_)) TROUPE_TRY(feed(i));
    }
    return drain();
  };
  Result<void> done = decode();
  if (done && delivered_ != ranks_.size()) done = missing(ranks_[delivered_]);
  counters_.bytes = reader_.bytes_read();
  counters_.read_seconds = reader_.seconds();
  counters_.decode_seconds = seconds_since(begin) - reader_.seconds() - sink_seconds_;
  if (!done && !sink_failed_ && nvdec_refused(codec)) return nvdec_refusal(file_->path, codec);
  return done;
}

Result<void> ClipRead::feed(std::int32_t index) {
  if (Clock::now() >= deadline_) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("{}: the deadline passed before sample {} of {}", file_->path, index, runs_.back().last)};
  }
  const VideoSample& sample = file_->table->samples[static_cast<std::size_t>(index)];
  if (sample.key) group_ = sample.rank;
  TROUPE_ASSIGN(const std::span<const std::uint8_t> bytes, reader_.next());
  if (index == run_first_ || (sample.key && file_->table->one_ref)) TROUPE_TRY(enter(index, bytes));
  if (!wanted(sample.rank) && nal_.is_disposable(bytes)) {
    ++counters_.dropped;
    return {};
  }
  TROUPE_TRY(reader_.fill(*packet_));
  // the presentation index travels through the codec as the time stamp, so that no clock arithmetic is needed
  packet_->pts = sample.rank;
  packet_->dts = index;
  packet_->flags = sample.key ? AV_PKT_FLAG_KEY : 0;
  ++counters_.fed;
  const int rc = avcodec_send_packet(codec_, packet_.get());
  av_packet_unref(packet_.get());
  if (rc < 0) {
    return Error{Errc::data_loss,
                 fmt::format("{}: frame {} cannot be decoded: {}", file_->path, sample.rank, av_error_text(rc))};
  }
  return receive();
}

/// At a sample from which on the table relies on nothing before. A flag of the container is not enough: some recorders
/// set it where a refresh begins that takes many frames.
Result<void> ClipRead::enter(std::int32_t index, std::span<const std::uint8_t> sample) {
  const EntryPoint entry = nal_.entry_point(sample);
  if (entry == EntryPoint::none && index > 0) {
    return Error{Errc::data_loss,
                 fmt::format("{}: frame {} is marked as a key frame, but refers to earlier frames", file_->path,
                             file_->table->samples[static_cast<std::size_t>(index)].rank)};
  }
  if (index != run_first_) return {};
  // FFmpeg keeps back what it has not seen recover, at the end of a run even the frames that are exact
  open_group_ = entry == EntryPoint::open_group;
  if (open_group_)
    codec_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
  else
    codec_->flags &= ~AV_CODEC_FLAG_OUTPUT_CORRUPT;
  return {};
}

Result<void> ClipRead::receive() {
  while (true) {
    const int rc = avcodec_receive_frame(codec_, frame_.get());
    if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return {};
    if (rc < 0) return Error{Errc::data_loss, fmt::format("{}: decoding failed: {}", file_->path, av_error_text(rc))};
    const Result<void> taken = take();
    av_frame_unref(frame_.get());
    TROUPE_TRY(taken);
  }
}

Result<void> ClipRead::take() {
  // hidden frames may lead an open group, whose shown frames never refer to them
  if (open_group_ && frame_->pts < 0) return {};
  // an unwanted frame counts as well: the wanted ones refer to it
  if ((frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0) {
    return Error{Errc::data_loss, fmt::format("{}: frame {} is corrupt (decoder flags {:#x})", file_->path, frame_->pts,
                                              frame_->decode_error_flags)};
  }
  if (frame_->pts < 0 || !wanted(frame_->pts)) return {};
  // out of order or twice means that the codec and the table disagree
  if (delivered_ >= ranks_.size() || ranks_[delivered_] != frame_->pts) {
    if (delivered_ < ranks_.size() && ranks_[delivered_] < frame_->pts) return missing(ranks_[delivered_]);
    return Error{Errc::data_loss, fmt::format("{}: the decoder gave frame {} where {} was due", file_->path,
                                              frame_->pts, delivered_ < ranks_.size() ? ranks_[delivered_] : -1)};
  }
  TROUPE_TRY(fetch_from_gpu(file_->path, *frame_));
  const std::int64_t rank = frame_->pts;
  while (delivered_ < ranks_.size() && ranks_[delivered_] == rank) ++delivered_;
  const auto begin = Clock::now();
  Result<void> done = (*on_frame_)(*frame_);
  sink_seconds_ += seconds_since(begin);
  sink_failed_ = !done;
  return done;
}

Result<void> ClipRead::drain() {
  const int rc = avcodec_send_packet(codec_, nullptr);
  if (rc < 0 && rc != AVERROR_EOF)
    return Error{Errc::data_loss, fmt::format("{}: draining failed: {}", file_->path, av_error_text(rc))};
  TROUPE_TRY(receive());
  avcodec_flush_buffers(codec_);
  return {};
}

Error ClipRead::missing(std::int64_t rank) const {
  const std::int32_t first_key = file_->table->samples.front().rank;
  if (rank < first_key) {
    return {Errc::data_loss,
            fmt::format("{}: frame {} is shown before the first key frame, {}, and refers to frames that the file does "
                        "not hold: it was cut from a longer one; encode it again or leave out its first {} frames",
                        file_->path, rank, first_key, first_key)};
  }
  return {Errc::data_loss, fmt::format("{}: the decoder gave {} of {} wanted frames; {} is missing", file_->path,
                                       delivered_, ranks_.size(), rank)};
}

}  // namespace troupe::data

#include "data/convert/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include "base/hash.h"
#include "data/video/nal_units.h"

namespace troupe::data {

Result<FrameReader> FrameReader::open(const std::string& path, std::shared_ptr<const PacketTable> table,
                                      std::int64_t first, std::int64_t count) {
  quiet_ffmpeg();
  const auto shown = static_cast<std::int64_t>(table->decode_of_rank.size());
  if (first < 0 || first + count > shown)
    return Error{Errc::data_loss,
                 fmt::format("{} has {} frames; {} to {} are wanted", path, shown, first, first + count - 1)};
  TROUPE_ASSIGN(PacketReader samples, PacketReader::open(path));
  FrameReader reader(path, std::move(table), std::move(samples));
  const PacketTable& t = *reader.table_;
  const AVCodec* decoder = avcodec_find_decoder(t.codec->codec_id);
  if (decoder == nullptr)
    return Error{Errc::failed_precondition, fmt::format("{}: this FFmpeg does not decode {}", path, codec_name(t))};
  reader.codec_.reset(avcodec_alloc_context3(decoder));
  if (avcodec_parameters_to_context(reader.codec_.get(), t.codec.get()) < 0)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory to decode it", path)};
  reader.codec_->thread_count = 1;
  reader.codec_->pkt_timebase = {1, 1000};
  if (const int rc = avcodec_open2(reader.codec_.get(), decoder, nullptr); rc < 0)
    return Error{Errc::data_loss, fmt::format("{}: opening the decoder failed: {}", path, av_error_text(rc))};
  if (count > 0) {
    TROUPE_TRY(reader.seek(first));
  }
  reader.next_ = first;
  reader.end_ = first + count;
  return reader;
}

/// To the last key frame that is decoded and shown no later than `first`, and from which decoding can start.
Result<void> FrameReader::seek(std::int64_t first) {
  const NalReader nal(*table_->codec);
  std::vector<std::uint8_t> bytes;
  for (at_ = static_cast<std::size_t>(table_->decode_of_rank[static_cast<std::size_t>(first)]);; --at_) {
    const VideoSample& sample = table_->samples[at_];
    if (at_ > 0 && (!sample.key || sample.rank > first)) continue;
    bytes.resize(static_cast<std::size_t>(sample.size));
    TROUPE_TRY(samples_.read(sample, bytes.data()));
    const EntryPoint entry = nal.entry_point(bytes);
    // FFmpeg keeps back what it has not seen recover, at the end of a file even the frames that are exact
    if (entry == EntryPoint::open_group) codec_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    if (at_ == 0 || entry != EntryPoint::none) return {};
  }
}

Result<void> FrameReader::feed() {
  if (at_ >= table_->samples.size()) {
    flushed_ = true;
    avcodec_send_packet(codec_.get(), nullptr);
    return {};
  }
  const VideoSample& sample = table_->samples[at_++];
  if (av_new_packet(packet_.get(), sample.size) < 0)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a frame", path_)};
  TROUPE_TRY(samples_.read(sample, packet_->data));
  packet_->pts = sample.rank;  // hidden ones come out with -1 and are passed over
  packet_->dts = AV_NOPTS_VALUE;
  packet_->flags = sample.key ? AV_PKT_FLAG_KEY : 0;
  const int rc = avcodec_send_packet(codec_.get(), packet_.get());
  av_packet_unref(packet_.get());
  if (rc < 0)
    return Error{Errc::data_loss,
                 fmt::format("{}: decoding frame {} failed: {}", path_, sample.rank, av_error_text(rc))};
  return {};
}

Result<const AVFrame*> FrameReader::next() {
  if (next_ >= end_) return static_cast<const AVFrame*>(nullptr);
  while (true) {
    const int rc = avcodec_receive_frame(codec_.get(), frame_.get());
    if (rc == AVERROR(EAGAIN) && !flushed_) {
      TROUPE_TRY(feed());
      continue;
    }
    if (rc < 0) {
      return Error{Errc::data_loss,
                   fmt::format("{}: frame {} did not come out of the decoder: {}", path_, next_, av_error_text(rc))};
    }
    if (frame_->pts < next_) continue;  // before the span, or hidden
    if (frame_->pts != next_) {
      return Error{Errc::data_loss, fmt::format("{}: frame {} is missing, {} came", path_, next_, frame_->pts)};
    }
    if ((frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0)
      return Error{Errc::data_loss, fmt::format("{}: frame {} is damaged", path_, next_)};
    ++next_;
    return frame_.get();
  }
}

std::uint64_t frame_hash(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const int size = av_image_get_buffer_size(format, frame.width, frame.height, 1);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::max(size, 0)));
  av_image_copy_to_buffer(bytes.data(), size, frame.data, frame.linesize, format, frame.width, frame.height, 1);
  return xxh3_64(std::as_bytes(std::span(bytes))) ^
         mix64(static_cast<std::uint64_t>(frame.format) << 40 ^ static_cast<std::uint64_t>(frame.width) << 20 ^
               static_cast<std::uint64_t>(frame.height));
}

}  // namespace troupe::data

#include "data/convert/mp4_output.h"

#include <fmt/format.h>

namespace troupe::data {

FrameRate FrameRate::of(double fps) {
  const AVRational q = av_d2q(fps, 100'000);
  return {q.num, q.den};
}

Error av_failure(const std::string& path, int code, const char* doing) {
  Errc kind = Errc::internal;
  if (code == AVERROR(ENOSPC) || code == AVERROR(EDQUOT) || code == AVERROR(ENOMEM)) kind = Errc::resource_exhausted;
  if (code == AVERROR(EACCES) || code == AVERROR(ENOENT)) kind = Errc::failed_precondition;
  if (code == AVERROR_INVALIDDATA) kind = Errc::data_loss;
  return {kind, fmt::format("{}: {} failed: {}", path, doing, av_error_text(code))};
}

Result<Mp4Output> Mp4Output::open(const std::string& path, const AVCodecParameters& codec, FrameRate rate) {
  quiet_ffmpeg();
  Mp4Output out;
  out.path_ = path;
  out.unit_ = {static_cast<int>(rate.den), static_cast<int>(rate.num)};
  AVFormatContext* raw = nullptr;
  int rc = avformat_alloc_output_context2(&raw, nullptr, "mp4", ("file:" + path).c_str());
  if (rc < 0) return av_failure(path, rc, "allocating the writer");
  out.context_.reset(raw);
  raw->flags |= AVFMT_FLAG_BITEXACT;
  AVStream* stream = avformat_new_stream(raw, nullptr);
  if (stream == nullptr) return av_failure(path, AVERROR(ENOMEM), "adding the stream");
  rc = avcodec_parameters_copy(stream->codecpar, &codec);
  if (rc < 0) return av_failure(path, rc, "copying the codec parameters");
  stream->time_base = out.unit_;
  stream->avg_frame_rate = av_inv_q(out.unit_);
  stream->sample_aspect_ratio = codec.sample_aspect_ratio;
  rc = avio_open(&raw->pb, raw->url, AVIO_FLAG_WRITE);
  if (rc < 0) return av_failure(path, rc, "creating the file");
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "movflags", "+faststart", 0);
  rc = avformat_write_header(raw, &settings);
  av_dict_free(&settings);
  if (rc < 0) return av_failure(path, rc, "writing the header");
  return out;
}

Result<void> Mp4Output::write(AVPacket& packet) {
  packet.stream_index = 0;
  av_packet_rescale_ts(&packet, unit_, context_->streams[0]->time_base);
  int rc = av_write_frame(context_.get(), &packet);
  if (rc >= 0 && context_->pb->error < 0) rc = context_->pb->error;
  if (rc < 0) return av_failure(path_, rc, "writing a frame");
  return {};
}

Result<void> Mp4Output::finish() {
  int rc = av_write_trailer(context_.get());
  if (rc >= 0 && context_->pb->error < 0) rc = context_->pb->error;
  if (rc < 0) return av_failure(path_, rc, "writing the index");
  rc = avio_closep(&context_->pb);
  if (rc < 0) return av_failure(path_, rc, "closing the file");
  return {};
}

}  // namespace troupe::data

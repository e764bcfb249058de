#include "data/video/video_encoder.h"

#include <fmt/format.h>

#include "data/video/ffmpeg.h"
#include "image/yuv_to_rgb.h"

namespace troupe::data {

struct VideoEncoder::State {
  std::string path;
  VideoEncoderOptions options;
  AvOutput output;
  AvCodecContext codec;
  AVStream* stream = nullptr;
  AvFrame frame{av_frame_alloc()};
  AvPacket packet{av_packet_alloc()};
  std::int64_t written = 0;

  Error failure(int code, const char* doing) const {
    const Errc kind = code == AVERROR(ENOSPC)                              ? Errc::resource_exhausted
                      : code == AVERROR(EACCES) || code == AVERROR(ENOENT) ? Errc::failed_precondition
                                                                           : Errc::internal;
    return {kind, fmt::format("{}: {} failed: {}", path, doing, av_error_text(code))};
  }

  Result<void> open_codec() {
    const AVCodec* encoder = avcodec_find_encoder_by_name("libx264");
    const bool x264 = encoder != nullptr;
    if (!x264) encoder = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    if (encoder == nullptr)
      return Error{Errc::failed_precondition, "this FFmpeg encodes neither H.264 (libx264) nor MPEG-4"};
    codec.reset(avcodec_alloc_context3(encoder));
    const AVRational rate = av_d2q(options.fps, 100'000);
    codec->width = static_cast<int>(options.width);
    codec->height = static_cast<int>(options.height);
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->framerate = rate;
    codec->time_base = av_inv_q(rate);
    codec->gop_size = static_cast<int>(options.gop);
    codec->keyint_min = static_cast<int>(options.gop);
    codec->max_b_frames = static_cast<int>(options.b_frames);
    if (options.b_frames == 0) codec->refs = 1;
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
    AVDictionary* settings = nullptr;
    if (x264) {
      av_dict_set(&settings, "preset", "veryfast", 0);
      av_dict_set_int(&settings, "crf", options.crf, 0);
      av_dict_set_int(&settings, "sc_threshold", 0, 0);  // key frames only where the GOP says
      av_dict_set(&settings, "x264-params", "scenecut=0", 0);
    } else {
      codec->flags |= AV_CODEC_FLAG_QSCALE;
      codec->global_quality = FF_QP2LAMBDA * 3;
    }
    const int rc = avcodec_open2(codec.get(), encoder, &settings);
    av_dict_free(&settings);
    if (rc < 0) return failure(rc, "opening the encoder");
    return {};
  }

  Result<void> open_file() {
    AVFormatContext* raw = nullptr;
    int rc = avformat_alloc_output_context2(&raw, nullptr, "mp4", ("file:" + path).c_str());
    if (rc < 0) return failure(rc, "allocating the writer");
    output.reset(raw);
    output->flags |= AVFMT_FLAG_BITEXACT;
    stream = avformat_new_stream(output.get(), nullptr);
    if (stream == nullptr) return failure(AVERROR(ENOMEM), "adding the stream");
    stream->time_base = codec->time_base;
    stream->avg_frame_rate = codec->framerate;
    rc = avcodec_parameters_from_context(stream->codecpar, codec.get());
    if (rc < 0) return failure(rc, "copying the codec parameters");
    rc = avio_open(&output->pb, output->url, AVIO_FLAG_WRITE);
    if (rc < 0) return failure(rc, "creating the file");
    AVDictionary* settings = nullptr;
    if (options.moov_first) av_dict_set(&settings, "movflags", "+faststart", 0);
    rc = avformat_write_header(output.get(), &settings);
    av_dict_free(&settings);
    if (rc < 0) return failure(rc, "writing the header");
    return {};
  }

  Result<void> allocate_frame() {
    frame->format = AV_PIX_FMT_YUV420P;
    frame->width = codec->width;
    frame->height = codec->height;
    if (const int rc = av_frame_get_buffer(frame.get(), 0); rc < 0) return failure(rc, "allocating a frame");
    return {};
  }

  /// Sends a frame, or null to flush, and writes what comes out.
  Result<void> send(const AVFrame* input) {
    int rc = avcodec_send_frame(codec.get(), input);
    if (rc < 0) return failure(rc, "encoding");
    while (true) {
      rc = avcodec_receive_packet(codec.get(), packet.get());
      if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return {};
      if (rc < 0) return failure(rc, "encoding");
      if (packet->duration == 0) packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      packet->stream_index = stream->index;
      rc = av_interleaved_write_frame(output.get(), packet.get());
      if (rc < 0) return failure(rc, "writing");
    }
  }
};

VideoEncoder::VideoEncoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
VideoEncoder::~VideoEncoder() = default;

Result<std::unique_ptr<VideoEncoder>> VideoEncoder::open(const std::string& path, const VideoEncoderOptions& options) {
  quiet_ffmpeg();
  if (options.width < 2 || options.height < 2 || options.width % 2 != 0 || options.height % 2 != 0 || options.gop < 1 ||
      options.fps <= 0) {
    return invalid_argument(
        fmt::format("{}: cannot encode {}x{} at {} frames/s with a key every {}; sides must be even", path,
                    options.width, options.height, options.fps, options.gop));
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  TROUPE_TRY(state->open_codec());
  TROUPE_TRY(state->open_file());
  TROUPE_TRY(state->allocate_frame());
  return std::unique_ptr<VideoEncoder>(new VideoEncoder(std::move(state)));
}

Result<void> VideoEncoder::write(const Rgb8View& frame) {
  State& s = *state_;
  if (frame.width != s.options.width || frame.height != s.options.height) {
    return invalid_argument(fmt::format("{}: frame of {}x{}; the file is {}x{}", s.path, frame.width, frame.height,
                                        s.options.width, s.options.height));
  }
  if (const int rc = av_frame_make_writable(s.frame.get()); rc < 0) return s.failure(rc, "preparing a frame");
  AVFrame& f = *s.frame;
  rgb_to_yuv420(frame, f.data[0], f.linesize[0], f.data[1], f.linesize[1], f.data[2], f.linesize[2]);
  f.pts = s.written++;
  return s.send(&f);
}

Result<std::int64_t> VideoEncoder::finish() {
  State& s = *state_;
  TROUPE_TRY(s.send(nullptr));
  if (const int rc = av_write_trailer(s.output.get()); rc < 0) return s.failure(rc, "writing the index");
  if (const int rc = avio_closep(&s.output->pb); rc < 0) return s.failure(rc, "closing the file");
  return s.written;
}

}  // namespace troupe::data

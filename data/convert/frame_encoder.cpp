#include "data/convert/frame_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include "base/fault.h"
#include "data/convert/mp4_output.h"

namespace troupe::data {

namespace {

struct FreeScaler {
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

const AVCodec* find_encoder(const std::string& codec) {
  const auto first_of = [](std::initializer_list<const char*> names) -> const AVCodec* {
    for (const char* name : names) {
      if (const AVCodec* found = avcodec_find_encoder_by_name(name)) return found;
    }
    return nullptr;
  };
  if (codec == "h264") return first_of({"libx264"});
  if (codec == "hevc" || codec == "h265") return first_of({"libx265"});
  // not SVT-AV1: version 1.4 never returns from being closed before it has got a frame
  if (codec == "av1") return first_of({"libaom-av1"});
  if (codec == "mpeg4") return first_of({"mpeg4"});
  return codec == "libsvtav1" ? nullptr : avcodec_find_encoder_by_name(codec.c_str());
}

/// What can be said without the encoder.
Result<void> check_values(const ConvertEncoding& e) {
  if (find_encoder(e.codec) == nullptr)
    return invalid_argument(
        fmt::format("--codec {}: this FFmpeg has no encoder for it (h264 needs libx264, hevc libx265, av1 "
                    "libaom-av1; mpeg4 is built in)",
                    e.codec));
  if (av_get_pix_fmt(e.pix_fmt.c_str()) == AV_PIX_FMT_NONE)
    return invalid_argument(fmt::format("--pix_fmt {}: FFmpeg knows no such format", e.pix_fmt));
  if (e.gop < 0 || e.crf < 0 || e.crf > 63 || e.width < 0 || e.height < 0 || e.width % 2 != 0 || e.height % 2 != 0)
    return invalid_argument(
        fmt::format("--gop {}, --crf {}, --scale {}x{}: wanted a GOP of at least 0, a CRF of 0 to 63, even sides",
                    e.gop, e.crf, e.width, e.height));
  return {};
}

}  // namespace

struct FrameEncoder::State {
  std::string path;
  ConvertEncoding encoding;
  FrameRate rate;
  std::optional<Mp4Output> output;
  AvCodecContext codec;
  AvFrame scaled{av_frame_alloc()}, reference{av_frame_alloc()};
  AvPacket packet{av_packet_alloc()};
  std::unique_ptr<SwsContext, FreeScaler> scaler;
  int width = 0, height = 0, format = -1;
  std::int64_t written = 0;

  Result<void> open_codec(const AVFrame& like) {
    const AVCodec* encoder = find_encoder(encoding.codec);
    codec.reset(avcodec_alloc_context3(encoder));
    AVCodecContext& c = *codec;
    c.width = encoding.width > 0 ? static_cast<int>(encoding.width) : like.width;
    c.height = encoding.height > 0 ? static_cast<int>(encoding.height) : like.height;
    c.pix_fmt = av_get_pix_fmt(encoding.pix_fmt.c_str());
    c.color_range = like.color_range;
    c.colorspace = like.colorspace;
    c.color_primaries = like.color_primaries;
    c.color_trc = like.color_trc;
    c.framerate = {static_cast<int>(rate.num), static_cast<int>(rate.den)};
    c.time_base = av_inv_q(c.framerate);
    c.gop_size = encoding.gop > 0 ? static_cast<int>(encoding.gop) : 1'000'000;  // 0: keys where write() says
    c.keyint_min = 1;
    c.max_b_frames = 0;
    c.refs = 1;
    c.thread_count = 1;
    c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
    AVDictionary* settings = nullptr;
    const std::string name = encoder->name;
    if (name == "mpeg4") {
      c.flags |= AV_CODEC_FLAG_QSCALE;
      c.global_quality = FF_QP2LAMBDA * static_cast<int>(std::clamp<std::int64_t>(encoding.crf / 5, 1, 31));
      c.gop_size = encoding.gop > 0 ? static_cast<int>(encoding.gop) : 600;  // the most that MPEG-4 allows
    } else {
      av_dict_set_int(&settings, "crf", encoding.crf, 0);
      if (name != "libaom-av1" && name != "libvpx-vp9") av_dict_set(&settings, "preset", encoding.preset.c_str(), 0);
    }
    if (name == "libx264") {
      av_dict_set(&settings, "forced-idr", "1", 0);
      av_dict_set(&settings, "x264-params", "scenecut=0:open-gop=0", 0);
    }
    if (name == "libx265") {
      av_dict_set(&settings, "forced-idr", "1", 0);
      av_dict_set(&settings, "x265-params", "log-level=none:scenecut=0:open-gop=0:bframes=0:pools=1:frame-threads=1",
                  0);
    }
    if (name == "libaom-av1") {
      av_dict_set(&settings, "cpu-used", "8", 0);
      av_dict_set(&settings, "lag-in-frames", "0", 0);
    }
    const int rc = avcodec_open2(codec.get(), encoder, &settings);
    av_dict_free(&settings);
    if (rc < 0) return av_failure(path, rc, "opening the encoder");
    return {};
  }

  Result<void> open_scaler(const AVFrame& like) {
    width = like.width;
    height = like.height;
    format = like.format;
    if (width == codec->width && height == codec->height && format == codec->pix_fmt) return {};
    scaler.reset(sws_getContext(width, height, static_cast<AVPixelFormat>(format), codec->width, codec->height,
                                codec->pix_fmt, SWS_BICUBIC | SWS_ACCURATE_RND | SWS_BITEXACT, nullptr, nullptr,
                                nullptr));
    if (!scaler)
      return invalid_argument(
          fmt::format("{}: frames cannot be made {}x{} {}", path, codec->width, codec->height, encoding.pix_fmt));
    scaled->format = codec->pix_fmt;
    scaled->width = codec->width;
    scaled->height = codec->height;
    if (const int rc = av_frame_get_buffer(scaled.get(), 0); rc < 0) return av_failure(path, rc, "allocating a frame");
    return {};
  }

  Result<void> send(const AVFrame* frame) {
    int rc = avcodec_send_frame(codec.get(), frame);
    if (rc < 0) return av_failure(path, rc, "encoding");
    while (true) {
      rc = avcodec_receive_packet(codec.get(), packet.get());
      if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return {};
      if (rc < 0) return av_failure(path, rc, "encoding");
      TROUPE_TRY(fault_point("convert.packet", path));
      packet->duration = 1;
      TROUPE_TRY(output->write(*packet));
      av_packet_unref(packet.get());
    }
  }
};

FrameEncoder::FrameEncoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
FrameEncoder::~FrameEncoder() = default;

Result<void> FrameEncoder::check(const ConvertEncoding& encoding) {
  quiet_ffmpeg();
  TROUPE_TRY(check_values(encoding));
  State trial;
  trial.path = "a trial";
  trial.encoding = encoding;
  trial.rate = {30, 1};
  const AvFrame like(av_frame_alloc());
  like->width = like->height = 64;
  if (const auto opened = trial.open_codec(*like); !opened) {
    return invalid_argument(fmt::format("--codec {}, --preset {}, --pix_fmt {}: the encoder does not take them ({})",
                                        encoding.codec, encoding.preset, encoding.pix_fmt, opened.error().message()));
  }
  return {};
}

Result<std::unique_ptr<FrameEncoder>> FrameEncoder::open(const std::string& path, const ConvertEncoding& encoding,
                                                         const AVFrame& like, FrameRate rate) {
  quiet_ffmpeg();
  TROUPE_TRY(check_values(encoding));
  auto state = std::make_unique<State>();
  state->path = path;
  state->encoding = encoding;
  state->rate = rate;
  TROUPE_TRY(state->open_codec(like));
  TROUPE_TRY(state->open_scaler(like));
  const AvCodecParameters parameters(avcodec_parameters_alloc());
  if (const int rc = avcodec_parameters_from_context(parameters.get(), state->codec.get()); rc < 0)
    return av_failure(path, rc, "copying the codec parameters");
  TROUPE_ASSIGN(state->output, Mp4Output::open(path, *parameters, rate));
  return std::unique_ptr<FrameEncoder>(new FrameEncoder(std::move(state)));
}

Result<void> FrameEncoder::write(const AVFrame& frame, bool key) {
  State& s = *state_;
  if (frame.width != s.width || frame.height != s.height || frame.format != s.format)
    return Error{Errc::data_loss, fmt::format("{}: a frame of {}x{} came among those of {}x{}", s.path, frame.width,
                                              frame.height, s.width, s.height)};
  AVFrame& out = *s.reference;
  if (s.scaler) {
    if (const int rc = av_frame_make_writable(s.scaled.get()); rc < 0)
      return av_failure(s.path, rc, "preparing a frame");
    sws_scale(s.scaler.get(), frame.data, frame.linesize, 0, frame.height, s.scaled->data, s.scaled->linesize);
  }
  av_frame_unref(&out);
  if (const int rc = av_frame_ref(&out, s.scaler ? s.scaled.get() : &frame); rc < 0)
    return av_failure(s.path, rc, "preparing a frame");
  out.pts = s.written++;
  // libaom makes the frame behind a forced key frame one, too; it makes its own at the distance that it was told
  const bool own_keys = s.encoding.gop > 0 && s.codec->codec_id == AV_CODEC_ID_AV1;
  out.pict_type = key && !own_keys ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
  return s.send(&out);
}

Result<void> FrameEncoder::next_episode(const AVFrame& like) {
  State& s = *state_;
  TROUPE_TRY(s.send(nullptr));
  const std::string before(reinterpret_cast<const char*>(s.codec->extradata),
                           static_cast<std::size_t>(s.codec->extradata_size));
  TROUPE_TRY(s.open_codec(like));
  const std::string after(reinterpret_cast<const char*>(s.codec->extradata),
                          static_cast<std::size_t>(s.codec->extradata_size));
  if (before == after) return {};
  return Error{Errc::internal, fmt::format("{}: the encoder changed its parameter sets between episodes", s.path)};
}

Result<std::int64_t> FrameEncoder::finish() {
  TROUPE_TRY(state_->send(nullptr));
  TROUPE_TRY(state_->output->finish());
  return state_->written;
}

}  // namespace troupe::data

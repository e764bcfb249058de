#include "data/video/nvdec.h"

#include <fmt/format.h>

#include <cstring>

extern "C" {
#include <libavutil/hwcontext.h>
}

namespace troupe::data {

namespace {

/// The GPU, opened once per process: creating a CUDA context takes long.
struct Device {
  AVBufferRef* context = nullptr;
  int error = 0;
};

const Device& device() {
  static const Device opened = [] {
    quiet_ffmpeg();
    Device d;
    d.error = av_hwdevice_ctx_create(&d.context, AV_HWDEVICE_TYPE_CUDA, nullptr, nullptr, 0);
    return d;
  }();
  return opened;
}

/// Offers CUDA first; FFmpeg asks again without it when the GPU cannot decode the stream.
AVPixelFormat choose_cuda(AVCodecContext* context, const AVPixelFormat* offered) {
  for (const AVPixelFormat* format = offered; *format != AV_PIX_FMT_NONE; ++format) {
    if (*format == AV_PIX_FMT_CUDA) return *format;
  }
  context->opaque = context;  // remembered for nvdec_refused: any value but null
  return AV_PIX_FMT_NONE;
}

bool decodes_with_cuda(const AVCodec& codec) {
  for (int i = 0;; ++i) {
    const AVCodecHWConfig* config = avcodec_get_hw_config(&codec, i);
    if (config == nullptr) return false;
    if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
        (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0)
      return true;
  }
}

/// FFmpeg's own decoder of the codec that has a CUDA path; wrappers such as libdav1d have none.
const AVCodec* find_cuda_decoder(AVCodecID id) {
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->id == id && av_codec_is_decoder(codec) != 0 && decodes_with_cuda(*codec)) return codec;
  }
  return nullptr;
}

}  // namespace

Result<void> check_nvdec() {
  if (device().context != nullptr) return {};
  return Error{Errc::failed_precondition,
               fmt::format("data.decoder.backend is nvdec, but no NVIDIA GPU can be opened here ({}); use cpu",
                           av_error_text(device().error))};
}

Result<AvCodecContext> open_nvdec(const std::string& path, const PacketTable& table) {
  TROUPE_TRY(check_nvdec());
  const AVCodecID id = table.codec->codec_id;
  const AVCodec* codec = find_cuda_decoder(id);
  if (codec == nullptr) {
    return invalid_argument(fmt::format("{}: this FFmpeg decodes no {} with CUDA; set data.decoder.backend to cpu",
                                        path, avcodec_get_name(id)));
  }
  AvCodecContext context(avcodec_alloc_context3(codec));
  if (context == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a codec context", path)};
  int rc = avcodec_parameters_to_context(context.get(), table.codec.get());
  if (rc < 0) return invalid_argument(fmt::format("{}: codec parameters refused: {}", path, av_error_text(rc)));
  context->hw_device_ctx = av_buffer_ref(device().context);
  context->get_format = choose_cuda;
  context->thread_count = 1;
  context->extra_hw_frames = 4;
  if (!table.reordered) context->flags |= AV_CODEC_FLAG_LOW_DELAY;
  if (context->hw_device_ctx == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a codec context", path)};
  rc = avcodec_open2(context.get(), codec, nullptr);
  if (rc < 0)
    return invalid_argument(
        fmt::format("{}: {} could not be opened on the GPU: {}", path, codec->name, av_error_text(rc)));
  return context;
}

bool nvdec_refused(const AVCodecContext& context) {
  return context.get_format == choose_cuda && context.opaque != nullptr;
}

Error nvdec_refusal(const std::string& path, const AVCodecContext& context) {
  return {Errc::invalid_argument, fmt::format("{}: this GPU does not decode this {} stream ({}x{}; A100, H100 and H200 "
                                              "have no AV1 decoder); set data.decoder.backend to cpu",
                                              path, avcodec_get_name(context.codec_id), context.width, context.height)};
}

void split_chroma(const AVFrame& nv12, AVFrame& planar) {
  for (int y = 0; y < nv12.height; ++y) {
    std::memcpy(planar.data[0] + static_cast<std::ptrdiff_t>(y) * planar.linesize[0],
                nv12.data[0] + static_cast<std::ptrdiff_t>(y) * nv12.linesize[0], static_cast<std::size_t>(nv12.width));
  }
  for (int y = 0; y < (nv12.height + 1) / 2; ++y) {
    const std::uint8_t* in = nv12.data[1] + static_cast<std::ptrdiff_t>(y) * nv12.linesize[1];
    std::uint8_t* u = planar.data[1] + static_cast<std::ptrdiff_t>(y) * planar.linesize[1];
    std::uint8_t* v = planar.data[2] + static_cast<std::ptrdiff_t>(y) * planar.linesize[2];
    for (int x = 0; x < (nv12.width + 1) / 2; ++x) {
      u[x] = in[2 * x];
      v[x] = in[2 * x + 1];
    }
  }
}

Result<void> fetch_from_gpu(const std::string& path, AVFrame& frame) {
  if (frame.format != AV_PIX_FMT_CUDA) return {};
  const AvFrame nv12(av_frame_alloc()), planar(av_frame_alloc());
  if (nv12 == nullptr || planar == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a frame", path)};
  if (const int rc = av_hwframe_transfer_data(nv12.get(), &frame, 0); rc < 0) {
    return Error{Errc::unavailable,
                 fmt::format("{}: a frame could not be copied from the GPU: {}", path, av_error_text(rc))};
  }
  if (nv12->format != AV_PIX_FMT_NV12) {
    return invalid_argument(fmt::format("{}: the GPU gave pixel format {}; wanted 8-bit 4:2:0 (nv12)", path,
                                        static_cast<int>(nv12->format)));
  }
  planar->format = AV_PIX_FMT_YUV420P;
  planar->width = frame.width;
  planar->height = frame.height;
  if (av_frame_get_buffer(planar.get(), 0) < 0 || av_frame_copy_props(planar.get(), &frame) < 0)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a frame", path)};
  split_chroma(*nv12, *planar);
  av_frame_unref(&frame);
  av_frame_move_ref(&frame, planar.get());
  return {};
}

}  // namespace troupe::data

#include "data/health/png.h"

#include <cstring>

#include "data/video/ffmpeg.h"

namespace troupe::data {

namespace {

Error failure(const char* doing, int code) {
  return {Errc::internal, std::string("PNG: ") + doing + ": " + av_error_text(code)};
}

}  // namespace

Result<std::string> encode_png(const Rgb8View& image) {
  quiet_ffmpeg();
  const AVCodec* encoder = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (encoder == nullptr) return Error{Errc::internal, "this FFmpeg has no PNG encoder"};
  const AvCodecContext codec(avcodec_alloc_context3(encoder));
  codec->width = static_cast<int>(image.width);
  codec->height = static_cast<int>(image.height);
  codec->pix_fmt = AV_PIX_FMT_RGB24;
  codec->time_base = {1, 1};
  codec->thread_count = 1;
  if (const int code = avcodec_open2(codec.get(), encoder, nullptr); code < 0) return failure("open", code);
  const AvFrame frame(av_frame_alloc());
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = codec->width;
  frame->height = codec->height;
  if (const int code = av_frame_get_buffer(frame.get(), 0); code < 0) return failure("buffer", code);
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::memcpy(frame->data[0] + y * frame->linesize[0], image.row(y), static_cast<std::size_t>(3 * image.width));
  }
  if (const int code = avcodec_send_frame(codec.get(), frame.get()); code < 0) return failure("encode", code);
  const AvPacket packet(av_packet_alloc());
  if (const int code = avcodec_receive_packet(codec.get(), packet.get()); code < 0) return failure("encode", code);
  return std::string(reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size));
}

}  // namespace troupe::data

#include "data/video/still_image.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "data/video/chroma_upsampling.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

bool begins_with(std::span<const std::byte> bytes, std::initializer_list<unsigned char> magic) {
  return bytes.size() > magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin(),
                                                   [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

/// Encoders may leave something behind the end marker; inside the coded frame the marker cannot occur.
bool ends_with_jpeg_marker(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostBehind = 4096;
  const std::byte marker[] = {std::byte{0xFF}, std::byte{0xD9}};
  const auto tail = bytes.last(std::min(bytes.size(), kMostBehind));
  return std::search(tail.begin(), tail.end(), std::begin(marker), std::end(marker)) != tail.end();
}

/// Calls `pixel(source row, x, three bytes to fill)` for every pixel.
template <class Pixel>
void fill(const AVFrame& frame, StillImage& out, const Pixel& pixel) {
  std::uint8_t* to = out.rgb.data();
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* row = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    for (int x = 0; x < frame.width; ++x, to += 3) pixel(row, x, to);
  }
}

void grey(std::uint8_t value, std::uint8_t* to) { to[0] = to[1] = to[2] = value; }

/// Samples `step` bytes apart, the first three of each are R, G, B.
void copy_rgb(const AVFrame& frame, int step, StillImage& out) {
  fill(frame, out, [step](const std::uint8_t* row, int x, std::uint8_t* to) { std::memcpy(to, row + step * x, 3); });
}

void look_up(const AVFrame& frame, StillImage& out) {
  fill(frame, out, [&](const std::uint8_t* row, int x, std::uint8_t* to) {
    std::uint32_t color = 0;  // 0xAARRGGBB in the machine's order
    std::memcpy(&color, frame.data[1] + 4 * row[x], sizeof color);
    to[0] = static_cast<std::uint8_t>(color >> 16);
    to[1] = static_cast<std::uint8_t>(color >> 8);
    to[2] = static_cast<std::uint8_t>(color);
  });
}

void copy_planes(const AVFrame& frame, StillImage& out) {
  std::uint8_t* to = out.rgb.data();
  for (int y = 0; y < frame.height; ++y) {
    const auto row = [&](int plane) {
      return frame.data[plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[plane];
    };
    const std::uint8_t *g = row(0), *b = row(1), *r = row(2);
    for (int x = 0; x < frame.width; ++x, to += 3) {
      to[0] = r[x];
      to[1] = g[x];
      to[2] = b[x];
    }
  }
}

/// One explicit rule a format; false for a format without one.
bool convert(const AVFrame& frame, StillImage& out) {
  switch (frame.format) {
    case AV_PIX_FMT_RGB24:
      copy_rgb(frame, 3, out);
      return true;
    case AV_PIX_FMT_RGBA:
    case AV_PIX_FMT_RGB0:
      copy_rgb(frame, 4, out);
      return true;
    case AV_PIX_FMT_GRAY8:
      fill(frame, out, [](const std::uint8_t* row, int x, std::uint8_t* to) { grey(row[x], to); });
      return true;
    case AV_PIX_FMT_YA8:
      fill(frame, out, [](const std::uint8_t* row, int x, std::uint8_t* to) { grey(row[2 * x], to); });
      return true;
    case AV_PIX_FMT_MONOBLACK:
      fill(frame, out, [](const std::uint8_t* row, int x, std::uint8_t* to) {
        grey((row[x / 8] >> (7 - x % 8)) & 1 ? 255 : 0, to);
      });
      return true;
    case AV_PIX_FMT_PAL8:
      look_up(frame, out);
      return true;
    case AV_PIX_FMT_GBRP:
      copy_planes(frame, out);
      return true;
    default:
      return false;
  }
}

/// JPEG's luma and chroma planes.
bool convert_yuv(const AVFrame& frame, StillImage& out) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ444P:
      break;
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUV440P:
    case AV_PIX_FMT_YUV444P:
      if (frame.color_range == AVCOL_RANGE_JPEG) break;
      return false;
    default:
      return false;
  }
  const AVPixFmtDescriptor& format = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const PlanarFrame planar{.planes = {frame.data[0], frame.data[1], frame.data[2]},
                           .strides = {frame.linesize[0], frame.linesize[1], frame.linesize[2]},
                           .height = frame.height,
                           .width = frame.width,
                           .half_width = format.log2_chroma_w == 1,
                           .half_height = format.log2_chroma_h == 1};
  full_range_to_rgb(planar, out.rgb);
  return true;
}

Result<AvCodecContext> open_codec(AVCodecID id, const std::string& name) {
  const AVCodec* codec = avcodec_find_decoder(id);
  if (codec == nullptr) {
    return invalid_argument(fmt::format("{}: this FFmpeg has no decoder for {}", name, avcodec_get_name(id)));
  }
  AvCodecContext context(avcodec_alloc_context3(codec));
  if (context == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a codec context", name)};
  context->thread_count = 1;
  context->max_pixels = kMostPixels;
  // a frame with an error in it is an error, not a guess
  context->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
  if (const int rc = avcodec_open2(context.get(), codec, nullptr); rc < 0) {
    return invalid_argument(fmt::format("{}: {} could not be opened: {}", name, codec->name, av_error_text(rc)));
  }
  return context;
}

}  // namespace

struct StillImageDecoder::State {
  std::map<AVCodecID, AvCodecContext> codecs;
  AvPacket packet{av_packet_alloc()};
  AvFrame frame{av_frame_alloc()};

  Result<AVCodecContext*> codec(AVCodecID id, const std::string& name) {
    auto it = codecs.find(id);
    if (it == codecs.end()) {
      TROUPE_ASSIGN(AvCodecContext context, open_codec(id, name));
      it = codecs.emplace(id, std::move(context)).first;
    }
    return it->second.get();
  }

  Result<void> decode_frame(AVCodecContext* context, std::span<const std::byte> bytes, const std::string& name) {
    const auto damaged = [&](int rc) {
      return Error{Errc::data_loss, fmt::format("{}: the image is damaged or cut off: {}", name, av_error_text(rc))};
    };
    av_packet_unref(packet.get());
    av_frame_unref(frame.get());
    if (av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) {
      return Error{Errc::resource_exhausted, fmt::format("{}: no memory for {} bytes", name, bytes.size())};
    }
    std::memcpy(packet->data, bytes.data(), bytes.size());
    packet->flags |= AV_PKT_FLAG_KEY;  // without it FFmpeg adds the frame before to a PNG
    avcodec_flush_buffers(context);
    if (const int rc = avcodec_send_packet(context, packet.get()); rc < 0) return damaged(rc);
    if (const int rc = avcodec_receive_frame(context, frame.get()); rc < 0) return damaged(rc);
    if ((frame->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame->decode_error_flags != 0)
      return damaged(AVERROR_INVALIDDATA);
    return {};
  }
};

StillImageDecoder::StillImageDecoder() : state_(std::make_unique<State>()) { quiet_ffmpeg(); }
StillImageDecoder::~StillImageDecoder() = default;
StillImageDecoder::StillImageDecoder(StillImageDecoder&&) noexcept = default;
StillImageDecoder& StillImageDecoder::operator=(StillImageDecoder&&) noexcept = default;

Result<void> StillImageDecoder::decode(std::span<const std::byte> bytes, const std::string& name, StillImage& out) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  const bool png = begins_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'});
  const bool jpeg = begins_with(bytes, {0xFF, 0xD8, 0xFF});
  if ((!png && !jpeg) || bytes.size() > kMostBytes) {
    return invalid_argument(fmt::format("{}: {} bytes that are neither a PNG nor a JPEG image", name, bytes.size()));
  }
  if (state_->packet == nullptr || state_->frame == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory to decode it", name)};
  TROUPE_ASSIGN(AVCodecContext* const context, state_->codec(png ? AV_CODEC_ID_PNG : AV_CODEC_ID_MJPEG, name));
  TROUPE_TRY(state_->decode_frame(context, bytes, name));
  // FFmpeg draws what a cut file holds; the end marker tells that it was whole.
  if (jpeg && !ends_with_jpeg_marker(bytes)) {
    return Error{Errc::data_loss, fmt::format("{}: the image is cut off: its end marker is missing", name)};
  }
  const AVFrame& frame = *state_->frame;
  out.height = frame.height;
  out.width = frame.width;
  out.rgb.resize(static_cast<std::size_t>(3 * out.height * out.width));
  if (convert(frame, out) || convert_yuv(frame, out)) return {};
  const AVPixFmtDescriptor& format = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const char* wide = format.comp[0].depth <= 8   ? ""
                     : format.nb_components <= 2 ? " (16-bit grey, as depth maps are: name other cameras as views)"
                                                 : " (16 bits a channel: store the images with 8)";
  return invalid_argument(fmt::format(
      "{}: {} pixels; 8 bits a channel of RGB, grey, a palette or JPEG's YCbCr are read{}", name, format.name, wide));
}

Result<StillImage> decode_still_image(std::span<const std::byte> bytes, const std::string& name) {
  StillImage out;
  TROUPE_TRY(StillImageDecoder().decode(bytes, name, out));
  return out;
}

}  // namespace troupe::data

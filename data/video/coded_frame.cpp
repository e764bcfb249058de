#include "data/video/coded_frame.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace troupe::data {

Result<Yuv420View> planes_of(const OpenFile& file, const AVFrame& frame) {
  if (frame.format != AV_PIX_FMT_YUV420P && frame.format != AV_PIX_FMT_YUVJ420P) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format));
    return invalid_argument(fmt::format("{}: pixel format {}; wanted 8-bit yuv420p, re-encode the dataset", file.path,
                                        name == nullptr ? "unknown" : name));
  }
  const AVCodecParameters& codec = *file.table->codec;
  if (frame.width != codec.width || frame.height != codec.height) {
    return Error{Errc::data_loss, fmt::format("{}: frame {} is {}x{}, the header says {}x{}", file.path, frame.pts,
                                              frame.width, frame.height, codec.width, codec.height)};
  }
  const bool rec709 = frame.colorspace == AVCOL_SPC_BT709;
  const bool rec601 = frame.colorspace == AVCOL_SPC_UNSPECIFIED || frame.colorspace == AVCOL_SPC_SMPTE170M ||
                      frame.colorspace == AVCOL_SPC_BT470BG;
  if (!rec709 && !rec601) {
    const char* name = av_color_space_name(frame.colorspace);
    return invalid_argument(fmt::format("{}: colour matrix {}; wanted BT.601, BT.709 or none stated", file.path,
                                        name == nullptr ? "unknown" : name));
  }
  return Yuv420View{.y = frame.data[0],
                    .u = frame.data[1],
                    .v = frame.data[2],
                    .y_stride = frame.linesize[0],
                    .u_stride = frame.linesize[1],
                    .v_stride = frame.linesize[2],
                    .height = frame.height,
                    .width = frame.width,
                    .matrix = rec709 ? ColorMatrix::bt709 : ColorMatrix::bt601,
                    .full_range = frame.color_range == AVCOL_RANGE_JPEG || frame.format == AV_PIX_FMT_YUVJ420P};
}

}  // namespace troupe::data

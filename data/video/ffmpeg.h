#pragma once

// Internal to data: FFmpeg's headers and one-line owners of its handles.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <memory>
#include <string>

namespace troupe::data {

/// FFmpeg's destructors take the address of the pointer they clear.
template <auto kFree>
struct FreeByAddress {
  template <class T>
  void operator()(T* handle) const {
    kFree(&handle);
  }
};

/// Closes a muxer and its file without writing a trailer.
struct CloseOutput {
  void operator()(AVFormatContext* context) const {
    avio_closep(&context->pb);
    avformat_free_context(context);
  }
};

/// Owners of an open muxer, demuxer, codec context, codec parameters, frame and packet; the last two own a reference to
/// the data.
using AvOutput = std::unique_ptr<AVFormatContext, CloseOutput>;
using AvInput = std::unique_ptr<AVFormatContext, FreeByAddress<avformat_close_input>>;
using AvCodecContext = std::unique_ptr<AVCodecContext, FreeByAddress<avcodec_free_context>>;
using AvCodecParameters = std::unique_ptr<AVCodecParameters, FreeByAddress<avcodec_parameters_free>>;
using AvFrame = std::unique_ptr<AVFrame, FreeByAddress<av_frame_free>>;
using AvPacket = std::unique_ptr<AVPacket, FreeByAddress<av_packet_free>>;

/// FFmpeg's text for a negative return value.
std::string av_error_text(int code);

/// Stops FFmpeg from printing to stderr: what goes wrong travels as Result. Cheap; every entry point calls it.
void quiet_ffmpeg();

}  // namespace troupe::data

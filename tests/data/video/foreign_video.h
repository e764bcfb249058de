#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include "base/hash.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

/// A video as other recorders write it: any encoder of FFmpeg, with its own options.
struct ForeignVideo {
  std::string encoder = "libx264";
  std::int64_t frames = 40;
  int width = 64, height = 48, gop = 10, b_frames = 0;
  AVPixelFormat pix_fmt = AV_PIX_FMT_YUV420P;
  /// The encoder's own, such as {"x264-params", "open-gop=1"}.
  std::vector<std::pair<std::string, std::string>> options{};
  /// Coded frames that are left out at the start of the file.
  std::int64_t cut = 0;
  /// Whether an edit list may hide frames that lead the first key.
  bool edit_list = true;
  /// FFmpeg's muxer; mov takes codecs that mp4 does not.
  std::string muxer = "mp4";
};

inline void av_must(int rc, const char* doing) {
  if (rc < 0) throw std::runtime_error(std::string(doing) + ": " + av_error_text(rc));
}

inline bool has_encoder(const char* name) { return avcodec_find_encoder_by_name(name) != nullptr; }

/// Frame k: a texture that moves, so that frames differ and refer to each other.
inline void draw_texture(AVFrame& frame, std::int64_t k) {
  const AVPixFmtDescriptor& format = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  for (int plane = 0; plane < av_pix_fmt_count_planes(static_cast<AVPixelFormat>(frame.format)); ++plane) {
    const bool chroma = plane == 1 || plane == 2;
    const int height = chroma ? AV_CEIL_RSHIFT(frame.height, format.log2_chroma_h) : frame.height;
    const int bytes = av_image_get_linesize(static_cast<AVPixelFormat>(frame.format), frame.width, plane);
    const bool wide = format.comp[0].depth > 8;
    for (int y = 0; y < height; ++y) {
      std::uint8_t* row = frame.data[plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[plane];
      for (int x = 0; x < bytes; ++x) {
        row[x] = wide && x % 2 == 1 ? static_cast<std::uint8_t>(k % 3)
                                    : static_cast<std::uint8_t>((x + 2 * k) * 5 % 97 + (y + k) * 3 % 89 + 20 * plane);
      }
    }
  }
}

/// A video's packets in the order of coding, and the encoder that they came from.
struct EncodedVideo {
  AvCodecContext codec;
  std::vector<AvPacket> packets;
};

/// Throws std::runtime_error with FFmpeg's reason.
inline EncodedVideo encode(const ForeignVideo& video) {
  quiet_ffmpeg();
  const AVCodec* encoder = avcodec_find_encoder_by_name(video.encoder.c_str());
  if (encoder == nullptr) throw std::runtime_error("no encoder " + video.encoder);
  EncodedVideo encoded{AvCodecContext(avcodec_alloc_context3(encoder)), {}};
  const AvCodecContext& codec = encoded.codec;
  codec->width = video.width;
  codec->height = video.height;
  codec->pix_fmt = video.pix_fmt;
  codec->framerate = {20, 1};
  codec->time_base = {1, 20};
  codec->gop_size = video.gop;
  codec->max_b_frames = video.b_frames;
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  AVDictionary* options = nullptr;
  for (const auto& [key, value] : video.options) av_dict_set(&options, key.c_str(), value.c_str(), 0);
  const int opened = avcodec_open2(codec.get(), encoder, &options);
  av_dict_free(&options);
  av_must(opened, "opening the encoder");

  const AvFrame frame(av_frame_alloc());
  frame->format = video.pix_fmt;
  frame->width = video.width;
  frame->height = video.height;
  av_must(av_frame_get_buffer(frame.get(), 0), "allocating a frame");
  for (std::int64_t k = 0; k <= video.frames; ++k) {
    if (k < video.frames) {
      av_must(av_frame_make_writable(frame.get()), "preparing a frame");
      draw_texture(*frame, k);
      frame->pts = k;
    }
    av_must(avcodec_send_frame(codec.get(), k < video.frames ? frame.get() : nullptr), "encoding");
    for (AvPacket packet(av_packet_alloc()); avcodec_receive_packet(codec.get(), packet.get()) >= 0;
         packet.reset(av_packet_alloc()))
      encoded.packets.push_back(std::move(packet));
  }
  return encoded;
}

/// Writes `path`, the packets behind the first `video.cut`. Throws std::runtime_error with FFmpeg's reason.
inline void write_foreign(const std::string& path, const ForeignVideo& video, const EncodedVideo& encoded) {
  AVFormatContext* raw = nullptr;
  av_must(avformat_alloc_output_context2(&raw, nullptr, video.muxer.c_str(), path.c_str()), "allocating the writer");
  const AvOutput output(raw);
  output->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
  AVStream* stream = avformat_new_stream(output.get(), nullptr);
  stream->time_base = encoded.codec->time_base;
  stream->avg_frame_rate = encoded.codec->framerate;
  av_must(avcodec_parameters_from_context(stream->codecpar, encoded.codec.get()), "copying the parameters");
  av_must(avio_open(&output->pb, path.c_str(), AVIO_FLAG_WRITE), "creating the file");
  AVDictionary* settings = nullptr;
  if (!video.edit_list) av_dict_set(&settings, "use_editlist", "0", 0);
  const int begun = avformat_write_header(output.get(), &settings);
  av_dict_free(&settings);
  av_must(begun, "writing the header");
  for (std::size_t i = static_cast<std::size_t>(video.cut); i < encoded.packets.size(); ++i) {
    const AvPacket packet(av_packet_clone(encoded.packets[i].get()));
    if (packet->duration == 0) packet->duration = 1;
    av_packet_rescale_ts(packet.get(), encoded.codec->time_base, stream->time_base);
    packet->stream_index = stream->index;
    av_must(av_interleaved_write_frame(output.get(), packet.get()), "writing");
  }
  av_must(av_write_trailer(output.get()), "writing the index");
  av_must(avio_closep(&output->pb), "closing the file");
}

inline void encode_foreign(const std::string& path, const ForeignVideo& video) {
  write_foreign(path, video, encode(video));
}

/// Hash of every frame's planes, in order of presentation: the whole file decoded from its first sample to its last by
/// FFmpeg alone. Throws std::runtime_error.
inline std::vector<std::string> decode_in_one_go(const std::string& path) {
  AVFormatContext* raw = nullptr;
  av_must(avformat_open_input(&raw, path.c_str(), nullptr, nullptr), "opening");
  const AvInput input(raw);
  const AVCodecParameters& parameters = *input->streams[0]->codecpar;
  const AvCodecContext codec(avcodec_alloc_context3(avcodec_find_decoder(parameters.codec_id)));
  av_must(avcodec_parameters_to_context(codec.get(), &parameters), "taking the parameters");
  codec->thread_count = 1;
  av_must(avcodec_open2(codec.get(), nullptr, nullptr), "opening the decoder");
  const AvPacket packet(av_packet_alloc());
  const AvFrame frame(av_frame_alloc());
  std::vector<std::string> hashes;
  bool more = true;
  while (more) {
    more = av_read_frame(input.get(), packet.get()) >= 0;
    av_must(avcodec_send_packet(codec.get(), more ? packet.get() : nullptr), "decoding");
    av_packet_unref(packet.get());
    while (avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(
          av_image_get_buffer_size(static_cast<AVPixelFormat>(frame->format), frame->width, frame->height, 1)));
      av_must(av_image_copy_to_buffer(bytes.data(), static_cast<int>(bytes.size()), frame->data, frame->linesize,
                                      static_cast<AVPixelFormat>(frame->format), frame->width, frame->height, 1),
              "copying a frame");
      hashes.push_back(to_hex(xxh64(std::as_bytes(std::span(bytes)))));
    }
  }
  return hashes;
}

}  // namespace troupe::data

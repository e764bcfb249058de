#include "bench/data/bare_decoder.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/hash.h"
#include "data/video/nal_units.h"

namespace troupe::bench {
namespace {

void check(int rc, const std::string& path) {
  if (rc < 0) throw std::runtime_error(path + ": " + av_error_text(rc));
}

}  // namespace

std::uint64_t hash_of(const Yuv420View& frame) {
  std::vector<std::uint8_t> bytes;
  const auto plane = [&](const std::uint8_t* data, std::ptrdiff_t stride, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t y = 0; y < rows; ++y) bytes.insert(bytes.end(), data + y * stride, data + y * stride + columns);
  };
  plane(frame.y, frame.y_stride, frame.height, frame.width);
  plane(frame.u, frame.u_stride, (frame.height + 1) / 2, (frame.width + 1) / 2);
  plane(frame.v, frame.v_stride, (frame.height + 1) / 2, (frame.width + 1) / 2);
  return xxh3_64(std::as_bytes(std::span(bytes)));
}

void BareDecoder::load(const std::string& path) {
  if (files_.contains(path)) return;
  quiet_ffmpeg();
  AVFormatContext* raw = nullptr;
  check(avformat_open_input(&raw, path.c_str(), nullptr, nullptr), path);
  const AvInput input(raw);
  check(avformat_find_stream_info(raw, nullptr), path);
  const int stream = av_find_best_stream(raw, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  check(stream, path);
  const AVCodecParameters& parameters = *raw->streams[stream]->codecpar;

  File& file = files_[path];
  const NalReader nal(parameters);
  for (AvPacket packet(av_packet_alloc()); av_read_frame(raw, packet.get()) >= 0; packet.reset(av_packet_alloc())) {
    if (packet->stream_index != stream) continue;
    file.disposable.push_back(nal.is_disposable({packet->data, static_cast<std::size_t>(packet->size)}));
    file.packets.push_back(std::move(packet));
  }
  file.place.resize(file.packets.size());
  std::iota(file.place.begin(), file.place.end(), 0);
  std::stable_sort(file.place.begin(), file.place.end(),
                   [&](auto a, auto b) { return file.packets[a]->pts < file.packets[b]->pts; });
  bool reordered = false;
  for (std::size_t rank = 0; rank < file.place.size(); ++rank) {
    file.packets[file.place[rank]]->pts = static_cast<std::int64_t>(rank);
    reordered |= file.place[rank] != rank;
  }
  const AVCodec* codec = parameters.codec_id == AV_CODEC_ID_AV1 ? avcodec_find_decoder_by_name("libdav1d")
                                                                : avcodec_find_decoder(parameters.codec_id);
  file.codec.reset(avcodec_alloc_context3(codec));
  check(avcodec_parameters_to_context(file.codec.get(), &parameters), path);
  file.codec->thread_count = 1;
  if (!reordered) file.codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
  check(avcodec_open2(file.codec.get(), codec, nullptr), path);
}

std::int64_t BareDecoder::decode(const DecodeClip& clip) {
  File& file = files_.at(clip.path);
  const std::vector<std::int64_t> frames = clip.frames();
  const auto wanted = [&](std::int64_t rank) { return std::binary_search(frames.begin(), frames.end(), rank); };
  std::size_t first = file.place[static_cast<std::size_t>(frames.front())], last = first;
  while (first > 0 &&
         ((file.packets[first]->flags & AV_PKT_FLAG_KEY) == 0 || file.packets[first]->pts > frames.front()))
    --first;
  for (const std::int64_t rank : frames) last = std::max(last, file.place[static_cast<std::size_t>(rank)]);

  std::int64_t given = 0;
  const auto receive = [&] {
    while (avcodec_receive_frame(file.codec.get(), frame_.get()) >= 0) given += wanted(frame_->pts) ? 1 : 0;
  };
  for (std::size_t i = first; i <= last; ++i) {
    AVPacket* packet = file.packets[i].get();
    if (file.disposable[i] && !wanted(packet->pts)) continue;
    ++fed_;
    check(avcodec_send_packet(file.codec.get(), packet), clip.path);
    receive();
  }
  check(avcodec_send_packet(file.codec.get(), nullptr), clip.path);
  receive();
  avcodec_flush_buffers(file.codec.get());
  return given;
}

std::vector<std::uint64_t> BareDecoder::hashes(const std::string& path) {
  File& file = files_.at(path);
  std::vector<std::uint64_t> hashes(file.packets.size());
  const auto receive = [&] {
    while (avcodec_receive_frame(file.codec.get(), frame_.get()) >= 0)
      hashes.at(static_cast<std::size_t>(frame_->pts)) =
          hash_of({frame_->data[0], frame_->data[1], frame_->data[2], frame_->linesize[0], frame_->linesize[1],
                   frame_->linesize[2], frame_->height, frame_->width});
  };
  for (const AvPacket& packet : file.packets) {
    check(avcodec_send_packet(file.codec.get(), packet.get()), path);
    receive();
  }
  check(avcodec_send_packet(file.codec.get(), nullptr), path);
  receive();
  avcodec_flush_buffers(file.codec.get());
  return hashes;
}

}  // namespace troupe::bench

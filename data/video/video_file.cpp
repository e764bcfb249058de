#include "data/video/video_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "data/video/ffmpeg.h"

namespace troupe::data {

VideoInfo describe_video(const PacketTable& table) {
  return VideoInfo{.width = table.codec->width,
                   .height = table.codec->height,
                   .frames = static_cast<std::int64_t>(table.decode_of_rank.size()),
                   .fps = table.fps,
                   .codec = avcodec_get_name(table.codec->codec_id),
                   .pix_fmt = table.pix_fmt,
                   .has_b_frames = table.reordered,
                   .uneven = table.uneven,
                   .first_seconds = table.first_seconds,
                   .hidden = static_cast<std::int64_t>(table.samples.size() - table.decode_of_rank.size())};
}

Result<VideoInfo> probe_video(const std::string& path) {
  TROUPE_ASSIGN(const auto table,
                read_packet_table(path, true, std::chrono::steady_clock::now() + std::chrono::seconds(10)));
  return describe_video(*table);
}

bool has_decoder(const std::string& codec) {
  const AVCodecDescriptor* known = avcodec_descriptor_get_by_name(codec.c_str());
  return known != nullptr && avcodec_find_decoder(known->id) != nullptr;
}

Result<std::int64_t> reconcile_frame_count(const std::string& path, std::int64_t rows, std::int64_t frames) {
  if (std::abs(rows - frames) <= 1) return std::min(rows, frames);
  return Error{Errc::data_loss, fmt::format("{}: {} frames, the episode has {} rows", path, frames, rows)};
}

const char* ffmpeg_version() { return av_version_info(); }

}  // namespace troupe::data

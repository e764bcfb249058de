#include "data/convert/camera_quantiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "base/parallel.h"
#include "data/convert/episode_stats.h"
#include "data/convert/frame_reader.h"
#include "data/convert/packet_copy.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/still_image.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kMostFrames = 1000;
/// Reading on from one frame to another that is no further away costs less than starting at its key frame.
constexpr std::int64_t kNear = 64;

/// By source file: frames of a video, or rows of a table, ascending.
using Places = std::map<std::string, std::vector<std::int64_t>>;

/// `camera`: place among the cameras of dtype video; nothing: a column of the tables.
Places choose(const ConvertContext& context, std::optional<std::size_t> camera) {
  const std::vector<PlannedEpisode>& episodes = context.plan.episodes;
  const std::int64_t rows = context.plan.frames, count = std::min(rows, kMostFrames);
  Places out;
  std::size_t e = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = count == 1 ? 0 : i * (rows - 1) / (count - 1);
    while (row >= episodes[e].first_row + episodes[e].length) ++e;
    const SourceEpisode& source = context.source_of(episodes[e]);
    const std::int64_t at = row - episodes[e].first_row;
    if (!camera) {
      out[source.table].push_back(source.first_row + at);
      continue;
    }
    const PlannedSpan& span = episodes[e].spans[*camera];
    out[source.videos[*camera].path].push_back(span.first + std::min(at, span.frames - 1));
  }
  for (auto& [path, places] : out) {
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  return out;
}

Result<void> add_video(const std::string& path, const std::vector<std::int64_t>& frames, ImageSums& sums) {
  TROUPE_ASSIGN(const auto table, video_packets(path));
  std::optional<FrameReader> reader;
  std::int64_t next = 0;
  std::vector<std::uint8_t> rgb;
  for (const std::int64_t wanted : frames) {
    if (!reader || wanted - next > kNear) {
      TROUPE_ASSIGN(auto opened, FrameReader::open(path, table, wanted, frames.back() - wanted + 1));
      reader.emplace(std::move(opened));
      next = wanted;
    }
    const AVFrame* frame = nullptr;
    for (; next <= wanted; ++next) {
      TROUPE_ASSIGN(frame, reader->next());
    }
    if (!frame_rgb(*frame, rgb)) return {};
    sums.add({rgb.data(), frame->height, frame->width, 3 * frame->width});
  }
  return {};
}

Result<void> add_images(const std::string& path, const std::string& column, const std::vector<std::int64_t>& rows,
                        ImageSums& sums) {
  TROUPE_ASSIGN(const auto images, read_image_cells(path, column, rows));
  StillImageDecoder decoder;
  StillImage image;
  for (std::size_t i = 0; i < images.size(); ++i) {
    TROUPE_TRY(decoder.decode(images[i], fmt::format("{} column '{}' row {}", path, column, rows[i]), image));
    sums.add(image.view());
  }
  return {};
}

void add(const ImageSums& part, ImageSums& sums) {
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) sums.counts[c][v] += part.counts[c][v];
  }
  sums.pixels += part.pixels;
  sums.frames += part.frames;
}

}  // namespace

Result<ImageSums> sample_camera(const ConvertContext& context, const std::string& camera) {
  const auto& cameras = context.plan.cameras;
  const auto found = std::find(cameras.begin(), cameras.end(), camera);
  const bool video = found != cameras.end();
  const Places places =
      choose(context, video ? std::optional(static_cast<std::size_t>(found - cameras.begin())) : std::nullopt);
  const std::vector<Places::value_type> files(places.begin(), places.end());
  ImageSums sums;
  std::mutex mutex;
  bool whole = true;
  const auto count_file = [&](std::size_t, std::size_t i) -> Result<void> {
    const auto& [path, wanted] = files[i];
    ImageSums part;
    TROUPE_TRY(video ? add_video(path, wanted, part) : add_images(path, camera, wanted, part));
    const std::lock_guard lock(mutex);
    whole = whole && part.frames == static_cast<std::int64_t>(wanted.size());
    add(part, sums);
    return {};
  };
  TROUPE_TRY(try_parallel_for(files.size(), context.request.jobs, count_file));
  return whole ? sums : ImageSums();
}

}  // namespace troupe::data

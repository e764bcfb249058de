#include "data/health/thumbnails.h"

#include <algorithm>
#include <set>

#include "data/health/camera_frames.h"
#include "data/health/png.h"
#include "data/health/shrink.h"

namespace troupe::data {

namespace {

/// `n` indices spread over [0, count): first, middle, last.
std::set<std::int64_t> first_middle_last(std::int64_t count) {
  if (count <= 0) return {};
  return {0, count / 2, count - 1};
}

}  // namespace

std::vector<Thumbnail> make_thumbnails(const LerobotDataset& dataset, std::span<const NamedColumn> cameras,
                                       std::span<const std::size_t> places, std::span<const std::int64_t> lengths) {
  std::vector<Thumbnail> out;
  CameraFrames reader;
  for (const NamedColumn& camera : cameras) {
    for (std::int64_t chosen : first_middle_last(static_cast<std::int64_t>(places.size()))) {
      const std::size_t place = places[static_cast<std::size_t>(chosen)];
      const auto source = dataset.images(place, camera.column);
      const std::set<std::int64_t> wanted = first_middle_last(lengths[static_cast<std::size_t>(chosen)]);
      const std::vector<std::int64_t> frames(wanted.begin(), wanted.end());
      if (!source) continue;
      std::vector<Thumbnail> found(frames.size());
      const auto read = reader.read(*source, frames, [&](std::size_t i, const Rgb8View& frame) -> Result<void> {
        const StillImage small = shrink(frame);
        TROUPE_ASSIGN(std::string png, encode_png(small.view()));
        found[i] = {camera.name, dataset.episodes()[place].index, frames[i], small.width, small.height, std::move(png)};
        return {};
      });
      if (read) std::move(found.begin(), found.end(), std::back_inserter(out));
    }
  }
  return out;
}

}  // namespace troupe::data

#pragma once

#include <span>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// First, middle and last frame of the first, middle and last of `places` (places in dataset.episodes()), for every
/// camera, at most 160 pixels wide: shrunk by a whole factor, each pixel the mean of a block of pixels. `lengths` are
/// the frames of each place. A frame that cannot be read is left out.
std::vector<Thumbnail> make_thumbnails(const LerobotDataset& dataset, std::span<const NamedColumn> cameras,
                                       std::span<const std::size_t> places, std::span<const std::int64_t> lengths);

}  // namespace troupe::data

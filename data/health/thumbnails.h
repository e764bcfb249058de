#pragma once

#include <span>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe {

/// First, middle and last picture of the first, middle and last of `places` (places in dataset.episodes()), for every
/// camera, at most 160 pixels wide. `lengths` are the pictures of each place. A picture that cannot be read is left
/// out.
std::vector<Thumbnail> make_thumbnails(const LerobotDataset& dataset, std::span<const NamedColumn> cameras,
                                       std::span<const std::size_t> places, std::span<const std::int64_t> lengths);

}  // namespace troupe

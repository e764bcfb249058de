#pragma once

#include <cstddef>

#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// `probe` (empty: probe_video) with a memory of the last `max_files` files, so that a video of many episodes is opened
/// once. Threads that ask for one file at the same time wait for the first. Copies share the memory; thread-safe.
VideoProbe cached_probe(VideoProbe probe, std::size_t max_files = 256);

}  // namespace troupe::data

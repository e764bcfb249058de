#pragma once

#include <cstdint>
#include <string>

namespace troupe::bench {

/// What is stepped: as SimCase, on one group.
struct CameraCase {
  std::string id = "arm7/lift-v1";
  std::int64_t num_envs = 64, threads = 2, rounds = 5;
  std::int64_t steps = 150;  ///< control steps of each environment in a run
};

/// Control steps of the pool without frames and with one RGB-D frame (colour and depth) in each, of 84x84 and 128x128
/// pixels, in alternating rounds: a markdown table of medians. One frame a step, so steps are frames too.
std::string camera_table(const CameraCase& c);

}  // namespace troupe::bench

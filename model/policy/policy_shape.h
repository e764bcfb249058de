#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What a policy sees and does, taken from an environment's spec and env.chunk: everything its networks' sizes depend on.
struct PolicyShape {
  struct Image {
    std::string name;                           ///< "rgb.front"
    std::int64_t height = 0, width = 0, channels = 3;
  };
  std::int64_t state_dim = 0;                   ///< D: all float vectors of the observation, concatenated in order
  std::vector<Image> images;                    ///< u8 [H,W,C]
  std::int64_t choices = 0;                     ///< discrete actions; 0: continuous
  std::int64_t action_dim = 1;                  ///< A; 1 for discrete actions
  std::int64_t chunk = 1;                       ///< K
  std::vector<float> action_low, action_high;   ///< [A], continuous
  std::int64_t max_episode_steps = 0;           ///< control steps of the longest episode, which aggregation trajectory needs; 0: unknown
};

}  // namespace troupe

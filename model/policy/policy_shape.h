#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What a policy sees and does, taken from an environment's spec and env.chunk: everything its networks' sizes depend on.
struct PolicyShape {
  struct Image {
    std::string name;  ///< "rgb.front", "depth.front"
    std::int64_t height = 0, width = 0, channels = 3;
    bool is_depth = false;  ///< f32, metres, 0 for no hit, one channel; else u8

    std::int64_t bytes() const { return height * width * channels * (is_depth ? 4 : 1); }
  };
  std::int64_t state_dim = 0;                  ///< D: all float vectors of the observation, concatenated in order
  std::vector<Image> images;                   ///< [H,W,C]
  std::int64_t choices = 0;                    ///< discrete actions; 0: continuous
  std::int64_t action_dim = 1;                 ///< A; 1 for discrete actions
  std::int64_t chunk = 1;                      ///< K
  std::vector<float> action_low, action_high;  ///< [A], continuous
  std::int64_t max_episode_steps =
      0;  ///< control steps of the longest episode, which aggregation trajectory needs; 0: unknown
};

}  // namespace troupe

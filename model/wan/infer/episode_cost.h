#pragma once

#include <cstdint>

#include "configs/data_config.h"
#include "configs/model_config.h"

namespace troupe::model {

/// Tokens of one sample and one branch over a window of `max_blocks` blocks: all video, and one block's actions and
/// states. `frame_tokens`: of one latent frame.
std::int64_t window_tokens(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block,
                           std::int64_t frame_tokens);

/// What the transformer keeps of policy calls (DitEpisode), for placement's ModelCost. Work space is not counted.
struct EpisodeCost {
  /// of an episode of one sample without guidance: its cache, and the keys and values of its first picture
  std::int64_t bytes = 0;
  /// of a prompt that fills the text encoder's length; episodes that are told the same share it
  std::int64_t prompt_bytes = 0;
};

/// `bytes_per_element` of the transformer's parameters: 4 for fp32, 2 for bf16.
EpisodeCost episode_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element);

}  // namespace troupe::model

#include "model/wan/infer/episode_cost.h"

#include "model/wan/model_cost.h"

namespace troupe::model {

std::int64_t window_tokens(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block,
                           std::int64_t frame_tokens) {
  return (1 + max_blocks * config.latent_frames_per_block) * frame_tokens + actions_per_block + config.states_per_block;
}

EpisodeCost episode_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element) {
  const SequenceLayout layout = planned_layout(config, window, /*trimmed=*/false);
  const auto tokens = window_tokens(config, window.chunks, window.action_horizon, layout.frame_tokens());
  const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const std::int64_t row = 2 * config.dit.num_layers * config.dit.dim * bytes_per_element;  // a key and a value
  return {.bytes = row * (tokens + side * side + 1), .prompt_bytes = row * config.text_encoder.max_length};
}

}  // namespace troupe::model

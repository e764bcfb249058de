#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"

namespace troupe::workers {

/// What config.json of a DreamZero folder says (docs/checkpoints.md#dreamzero-folders-gears-layout): the nested
/// `config` of action_head_cfg. `_target_` and every field that has no effect on the numbers are ignored.
struct GearConfig {
  /// target_height and target_width 0: no resize, the canvas as it is.
  ModelConfig model;
  /// Frame blocks of a window.
  std::int64_t max_chunk_size = 4;
  /// Rows of an action chunk: num_action_per_block.
  std::int64_t actions_per_block = 0;
  /// alpha / rank of the adapters.
  double lora_scale = 1;
  /// Whether the video stops denoising at the noise level below while actions go on to zero.
  bool decouple_inference_noise = false;
  double video_inference_final_noise = 0.8;
  /// Sizes that the file leaves to the class's defaults; stored tensors decide.
  bool open_encoder_hidden = false, open_action_dim = false, open_state_dim = false;

  /// The member "troupe", which Troupe's own exports add for what GEAR's layout cannot say. Empty: not said.
  std::string layout, prompt, language_key;
  std::int64_t macro_stride = 0;
  std::vector<std::int64_t> video_offsets;
  bool byte_tokenizer = false;
  /// The vectors are whole columns of a dataset, which have no key in modality.json.
  bool whole_state = false, whole_action = false;
};

/// Parses the text of config.json; `path` names it in errors. Sizes that the reference takes from its classes' defaults
/// are those defaults. Errors: invalid_argument: not JSON, a missing or wrong member, an action_horizon that is not
/// num_action_per_block, a frame_seqlen that does not fit the target size, max_chunk_size -1.
Result<GearConfig> parse_gear_config(const std::string& text, const std::string& path);

/// The text of config.json for a model: every field that parse_gear_config reads, GEAR's `_target_`s, and the member
/// "troupe". Sizes of the frozen encoders are written only where they differ from the published networks'. Sorted keys.
std::string gear_config_json(const GearConfig& config);

/// frame_seqlen of a model whose canvas enters the codec with this size: video tokens per latent frame.
std::int64_t gear_frame_tokens(const LatentCodecConfig& codec, std::int64_t height, std::int64_t width);

}  // namespace troupe::workers

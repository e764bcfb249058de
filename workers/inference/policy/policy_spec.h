#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"
#include "data/statistics/normalise.h"
#include "data/statistics/statistics.h"

namespace troupe::workers {

/// One named vector of the state or the action: its width, and how its values are brought near [-1, 1].
struct PolicyKey {
  std::string name{};
  std::int64_t width = 0;
  NormalizationMode mode = NormalizationMode::q99;
  /// Of an action: the newest state of the same name is added to what the model predicts.
  bool relative = false;
  /// One entry, or one for each step of the horizon. Those of a relative key are of relative actions.
  std::vector<FeatureStatistics> statistics{};
};

/// Everything that a policy must know beside its weights, whatever kind of folder it was read from.
struct PolicySpec {
  /// Of the folder, for logs.
  std::string name;
  ModelConfig model;
  /// Blocks of a window and rows of a chunk; how each view is cropped and resized.
  WindowConfig window;
  ImageConfig image;
  /// Tag, views in canvas order, layout, prompt, key names.
  EmbodimentConfig embodiment;
  /// Keys in order of concatenation.
  std::vector<PolicyKey> state, action;
  /// Alpha / rank, for adapters beside the weights.
  double lora_scale = 1;
  /// The video stops at noise level video_final_noise, actions go on to zero (GEAR's decouple_inference_noise).
  bool decouple_noise = false;
  /// Noise level, 0 to 1, at which the video stops where decouple_noise says so.
  double video_final_noise = 0.8;
  /// State tokens see only themselves, as in training (InferOptions): of a policy that learned in an environment.
  bool state_self_only = false;
  /// Sizes that the configuration leaves open and the stored tensors decide.
  bool open_encoder_hidden = false, open_action_dim = false, open_state_dim = false;

  std::int64_t state_width() const { return width_of(state); }
  std::int64_t action_width() const { return width_of(action); }
  /// Pixel frames of a block, and so of a call after the first without the frame before it.
  std::int64_t frames_per_block() const { return model.codec.stride_t * model.latent_frames_per_block; }

 private:
  static std::int64_t width_of(const std::vector<PolicyKey>& keys) {
    std::int64_t width = 0;
    for (const PolicyKey& key : keys) width += key.width;
    return width;
  }
};

/// Rules between the parts: sizes of the model, window against model, views against layout, key widths, statistics.
/// `where` begins the message. Errors: invalid_argument listing everything that is wrong.
Result<void> check_policy_spec(const PolicySpec& spec, const std::string& where);

}  // namespace troupe::workers

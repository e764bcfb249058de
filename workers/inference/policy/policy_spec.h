#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"
#include "data/statistics/normalise.h"
#include "data/statistics/statistics.h"

namespace troupe {

/// One named vector of the state or the action: its width, and how its values are brought near [-1, 1].
struct PolicyKey {
  std::string name{};
  std::int64_t width = 0;
  NormalizationMode mode = NormalizationMode::q99;
  bool relative = false;  ///< of an action: the newest state of the same name is added to what the model predicts
  /// One entry, or one for each step of the horizon. Those of a relative key are of relative actions.
  std::vector<FeatureStatistics> statistics{};
};

/// Everything that a policy must know beside its weights, whatever kind of folder it was read from.
struct PolicySpec {
  std::string name;  ///< of the folder, for logs
  ModelConfig model;
  WindowConfig window;
  ImageConfig image;
  EmbodimentConfig embodiment;           ///< tag, views in canvas order, layout, prompt, key names
  std::vector<PolicyKey> state, action;  ///< in order of concatenation
  double lora_scale = 1;                 ///< alpha / rank, for adapters beside the weights
  bool decouple_noise = false;           ///< dreamzero-model.md 6.6
  double video_final_noise = 0.8;
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

/// The name that data.embodiment.normalization has for a mode.
const char* normalization_name(NormalizationMode mode);

/// Rules between the parts: sizes of the model, window against model, views against layout, key widths, statistics.
/// `where` begins the message. Errors: invalid_argument listing everything that is wrong.
Result<void> check_policy_spec(const PolicySpec& spec, const std::string& where);

}  // namespace troupe

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/model_config.h"
#include "model/wan/weights/checkpoint_names.h"

namespace troupe::model {

/// Parameter counts of a configuration, from its shapes alone: what `troupe doctor --model` prints.
struct ModelSummary {
  /// patch_embedding, text_embedding, time_embedding, time_projection, img_emb, head, state_encoder, action_encoder,
  /// action_decoder; of one block: block, block.self_attn, block.cross_attn, block.ffn, block.image_path (k_img, v_img,
  /// norm_k_img), block.other (norm3, modulation).
  std::map<std::string, std::int64_t> dit_parts;
  /// parameters of all transformer blocks together
  std::int64_t blocks = 0;
  std::int64_t dit = 0;
  /// what a Wan checkpoint holds of the DiT
  std::int64_t in_wan = 0;
  /// what a Wan checkpoint lacks of the image path
  std::int64_t new_image_path = 0;
  /// what a Wan checkpoint lacks otherwise: state encoder, action encoder, action decoder
  std::int64_t new_action_state = 0;
  std::int64_t text_encoder = 0, token_embedding = 0;
  /// the visual tower; log_scale is not in it
  std::int64_t image_encoder = 0;
  /// without the last block, the last norm and the projection
  std::int64_t image_encoder_used = 0;
  /// all 0 with codec dct
  std::int64_t vae = 0, vae_encoder = 0, vae_decoder = 0;
  /// tensors of each component that a checkpoint holds
  std::map<Component, std::int64_t> tensors;
};

/// Allocates nothing but the list of names.
ModelSummary summarise_model(const ModelConfig& config);

/// Elements of a list of parameters.
std::int64_t count_elements(const std::vector<ParamSpec>& specs);

/// The configuration with the codec of Wan's VAE, "wan21" or "wan22", at its real size.
ModelConfig with_wan_codec(ModelConfig config, const std::string& type);

}  // namespace troupe::model

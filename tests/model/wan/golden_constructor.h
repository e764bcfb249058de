#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "tests/support/visible.h"

namespace troupe::testing {

using ParamShapes = std::map<std::string, std::vector<std::int64_t>>;

/// Fails where two have one name.
inline ParamShapes shapes_of(const std::vector<ParamSpec>& specs) {
  ParamShapes shapes;
  for (const auto& spec : specs) EXPECT_TRUE(shapes.emplace(spec.name, spec.shape).second) << spec.name << " twice";
  return shapes;
}

/// The model that a case's record of the reference's constructor arguments describes. An argument that is not recorded
/// keeps the default of ModelConfig.
inline ModelConfig config_of_constructor(const nlohmann::json& arguments) {
  ModelConfig config;
  auto& dit = config.dit;
  dit.type = arguments.value("model_type", dit.type);
  dit.dim = arguments.value("dim", dit.dim);
  dit.in_dim = arguments.value("in_dim", dit.in_dim);
  dit.out_dim = arguments.value("out_dim", dit.out_dim);
  dit.ffn_dim = arguments.value("ffn_dim", dit.ffn_dim);
  dit.freq_dim = arguments.value("freq_dim", dit.freq_dim);
  dit.num_heads = arguments.value("num_heads", dit.num_heads);
  dit.num_layers = arguments.value("num_layers", dit.num_layers);
  dit.encoder_hidden = arguments.value("hidden_size", dit.encoder_hidden);
  dit.action_dim = arguments.value("action_dim", dit.action_dim);
  dit.max_state_dim = arguments.value("max_state_dim", dit.max_state_dim);
  config.text_encoder.dim = arguments.value("text_dim", config.text_encoder.dim);
  config.image_encoder.dim = arguments.value("clip_dim", config.image_encoder.dim);
  return config;
}

/// Wan2.1's image-to-video model of 14 billion parameters; the defaults of ModelConfig are the sizes of Wan2.2's 5B.
inline ModelConfig wan_14b() {
  ModelConfig config;
  config.dit.type = "i2v";
  config.dit.dim = 5120;
  config.dit.num_heads = 40;
  config.dit.num_layers = 40;
  config.dit.ffn_dim = 13824;
  config.dit.in_dim = 36;
  config.dit.out_dim = 16;
  config.dit.concat_first_frame_latent = true;
  return config;
}

}  // namespace troupe::testing

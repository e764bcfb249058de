#pragma once

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Names and shapes of Wan's VAE as in its checkpoint (Wan2.1_VAE.pth, Wan2.2_VAE.pth), without a prefix, for codec
/// types wan21 and wan22; empty for every other type. Initial values for runs without weights: convolutions uniform
/// within 1/sqrt(fan in), weights and biases, as LibTorch starts them; gains one.
std::vector<ParamSpec> vae_params(const LatentCodecConfig& config);

}  // namespace troupe::model

#pragma once

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe {

/// Names and shapes of Wan's VAE as in its checkpoint (dreamzero-model.md 7.3), without a prefix, for codec types wan21
/// and wan22; empty for every other type. Initial values for runs without weights: convolutions uniform within
/// 1/sqrt(fan in), weights and biases, as LibTorch starts them; gains one.
std::vector<ParamSpec> vae_params(const LatentCodecConfig& config);

}  // namespace troupe

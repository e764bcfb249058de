#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/data_config.h"

namespace troupe::data {

/// What a MixtureOrder divides among the datasets of `data.sets`: the weight of each, with data.mixture.share "samples"
/// times its training samples, to the power of 1 / data.mixture.temperature, over the largest of them. `samples` has
/// one number a dataset; a dataset that data.sets does not name has weight 1. All are positive. Pure.
std::vector<double> mixture_weights(const DataConfig& data, std::span<const std::uint64_t> samples);

}  // namespace troupe::data

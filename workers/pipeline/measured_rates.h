#pragma once

#include <string>

#include "base/result.h"
#include "workers/pipeline/step_prediction.h"

namespace troupe::workers {

/// What scripts/gpu-check measured, in place of assumptions: a JSON object by model of device ("H200"), of numbers by
/// name: those of DeviceRates, but `attention_short` and `attention_long` (sequences below 4,096 tokens, and longer
/// ones) in place of `attention`; collective, hop and link are those of one node. What is missing stays assumed.
/// Errors: invalid_argument, with `file`: no such object, an unknown name, a number that is not positive.
Result<AdjustRates> measured_rates(const std::string& json, const std::string& file);

}  // namespace troupe::workers

#pragma once

#include <ATen/core/ScalarType.h>

#include <string_view>

namespace troupe::model {

/// The dtype of fp32 or bf16, as keys of a job name it (precision.param, precision.encoders, optimizer.moments).
inline at::ScalarType dtype_of_precision(std::string_view name) { return name == "bf16" ? at::kBFloat16 : at::kFloat; }

}  // namespace troupe::model

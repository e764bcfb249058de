#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace troupe::model {

/// Of safetensors' name of a floating-point dtype; nothing for any other.
inline std::optional<at::ScalarType> float_type(std::string_view dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  if (dtype == "F64") return at::kDouble;
  return std::nullopt;
}

}  // namespace troupe::model

#pragma once

#include <cstdint>
#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// "512,000": decimal digits in groups of three.
inline std::string format_grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t sign = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > sign + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

}  // namespace troupe::base

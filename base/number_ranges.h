#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::base {

/// first, first + 1, ..., last; 0 <= first <= last.
struct NumberRange {
  std::int64_t first = 0, last = 0;
};

/// "3,8..11": numbers and ranges, whose ends belong to them; empty for an empty text. `flag` and `noun` are for the
/// error (invalid_argument): "--episodes 3,x: 'x' is no episode; wanted ...".
Result<std::vector<NumberRange>> parse_number_ranges(const std::string& text, const std::string& flag,
                                                     const std::string& noun);

}  // namespace troupe::base

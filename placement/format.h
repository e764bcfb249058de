#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/grouped_digits.h"

namespace troupe::placement {

/// "139.8 GiB", "12.0 MiB", "512 B": the largest binary unit that gives at least 1, with one decimal.
std::string format_bytes(std::int64_t bytes);

/// "5.61e9" from a million on, "12,345" below.
std::string format_count(std::int64_t count);

/// "2" or "0.25": cores without trailing zeros.
std::string format_cpus(double cpus);

/// " Did you mean 'decoder'?" for the nearest of `known` (configs/suggest.h), else an empty string.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

/// "a, b and c".
std::string join_names(const std::vector<std::string>& names);

}  // namespace troupe::placement

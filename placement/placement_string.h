#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::placement {

/// Which resources each process of a role gets: entry p lists the resource numbers of process p, ascending.
/// A resource listed under several processes is shared by them.
using ProcessMap = std::vector<std::vector<std::int64_t>>;

/// Reads RLinf's placement grammar (docs/placement.md#from-strings-to-seats).
///
///     placement = segment {"," segment}     segment = resources [":" processes]
///     resources = "all" | range             processes = range            range = int ["-" int]
///
/// Resources are numbered 0..num_resources-1, ascend strictly over the whole string and appear once. Processes
/// without a range continue after the highest rank so far, one per resource. Over the whole string the process ranks
/// are exactly 0..N-1, each once. In a segment with R resources and P processes one count divides the other: with R
/// >= P every process gets R/P consecutive resources, else P/R consecutive processes share one. Blanks around numbers
/// are ignored.
///
/// `key` is the configuration key, put in front of every error.
/// Errors: invalid_argument with the offending segment, what was wanted, and the nearest string that would do.
Result<ProcessMap> parse_placement(std::string_view text, std::int64_t num_resources, std::string_view key);

/// Reads "0", "0-3" or "0,2-3": ascending ranks without repeats. Errors: invalid_argument.
Result<std::vector<std::int64_t>> parse_ranks(std::string_view text, std::string_view key);

}  // namespace troupe::placement

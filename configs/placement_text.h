#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::configs {

/// Checks the text of a placement as far as it can be checked without a cluster: `R[:P]`
/// segments separated by commas, R = `all` or a number or an inclusive range, P a number or a range; resource numbers
/// strictly ascending, process numbers contiguous from 0, one count of a segment dividing the other. Returns what is
/// wrong.
std::optional<std::string> check_placement_text(const std::string& text);

/// The same for `node_ranks`: numbers and inclusive ranges, comma separated, ascending, below `num_nodes`.
std::optional<std::string> check_rank_list(const std::string& text, std::int64_t num_nodes);

}  // namespace troupe::configs

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::configs {

// The words that placement strings and rank lists are made of, shared by the check at load time, which
// knows no cluster, and the planner, which does.

/// Longest placement text, most elements of one range, largest rank.
inline constexpr std::size_t kMaxPlacementText = 4096;
inline constexpr std::int64_t kMaxRankRange = 65'536;
inline constexpr std::int64_t kMaxRank = 2'147'483'647;

/// An inclusive range of ranks.
struct RankRange {
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first + 1; }
};

/// Without blanks and tabs at both ends. The view is into `text`.
std::string_view trim_blanks(std::string_view text);

/// A rank: digits, blanks around them allowed, at most kMaxRank.
std::optional<std::int64_t> parse_rank(std::string_view text);

/// The trimmed parts between separators; one part when there is none. The views are into `text`.
std::vector<std::string_view> split_trimmed(std::string_view text, char separator);

}  // namespace troupe::configs

#include "kernels/attention_plan.h"

#include <algorithm>
#include <set>

namespace troupe::kernels {
namespace {

/// Appends tiles of [begin, end), of nearly equal sizes, which all meet the same ranges.
void add_tiles(std::vector<AttentionTile>& tiles, AttentionRange rows, std::int32_t first_range, std::int32_t ranges) {
  for (auto begin = rows.begin; begin < rows.end; begin += kAttentionTile)
    tiles.push_back({begin, std::min(rows.end, begin + kAttentionTile), first_range, ranges});
}

}  // namespace

AttentionPlan plan_attention(const std::vector<AttentionSegment>& segments, std::int32_t keys) {
  AttentionPlan plan;
  const auto add_ranges = [&](const std::vector<AttentionRange>& ranges) {
    const auto first = static_cast<std::int32_t>(plan.ranges.size());
    plan.ranges.insert(plan.ranges.end(), ranges.begin(), ranges.end());
    return first;
  };
  // keys between two edges are seen by the same segments
  std::set<std::int32_t> edges = {0, keys};
  for (const auto& segment : segments) {
    add_tiles(plan.query_tiles, segment.queries, add_ranges(segment.keys),
              static_cast<std::int32_t>(segment.keys.size()));
    for (const auto& range : segment.keys) edges.insert({range.begin, range.end});
  }
  for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
    const AttentionRange rows{*edge, *std::next(edge)};
    std::vector<AttentionRange> queries;
    for (const auto& segment : segments) {
      const bool sees = std::any_of(segment.keys.begin(), segment.keys.end(), [&](const AttentionRange& range) {
        return range.begin <= rows.begin && rows.end <= range.end;
      });
      if (sees) queries.push_back(segment.queries);
    }
    add_tiles(plan.key_tiles, rows, add_ranges(queries), static_cast<std::int32_t>(queries.size()));
  }
  return plan;
}

}  // namespace troupe::kernels

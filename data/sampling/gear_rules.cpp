#include "data/sampling/gear_rules.h"

#include <algorithm>
#include <numeric>

namespace troupe::data {

bool gear_lists_anchor(std::int64_t anchor, std::int64_t length, std::int64_t reach) {
  return anchor >= 0 && anchor <= length - reach;
}

std::optional<std::int64_t> gear_padded_row(std::int64_t step, std::int64_t length, bool relative) {
  if (relative && (step < 0 || step >= length)) return std::nullopt;
  return std::clamp<std::int64_t>(step, 0, length - 1);
}

std::vector<std::vector<std::size_t>> gear_shards(std::span<const std::int64_t> lengths, std::int64_t rows_per_shard) {
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t count = (total + rows_per_shard - 1) / rows_per_shard;
  std::vector<std::vector<std::size_t>> shards(static_cast<std::size_t>(count));
  std::int64_t rows = 0;
  std::size_t shard = 0;
  for (std::size_t episode = 0; episode < lengths.size() && shard < shards.size(); ++episode) {
    shards[shard].push_back(episode);
    rows += lengths[episode];
    // Beyond cut (shard + 1) / count of all rows, in integers.
    if (rows * count > (static_cast<std::int64_t>(shard) + 1) * total) ++shard;
  }
  return shards;
}

}  // namespace troupe::data

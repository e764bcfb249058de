#include "workers/data/video/decode_plan.h"

#include <algorithm>

namespace troupe {

std::int32_t governing_key(const PacketTable& table, std::int64_t rank) {
  std::int32_t key = table.decode_of_rank[static_cast<std::size_t>(rank)];
  while (key > 0) {
    const VideoSample& sample = table.samples[static_cast<std::size_t>(key)];
    if (sample.key && sample.rank <= rank) break;
    --key;
  }
  return key;
}

std::vector<DecodeRun> plan_runs(const PacketTable& table, std::span<const std::int64_t> frames) {
  std::vector<DecodeRun> wanted;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i > 0 && frames[i] == frames[i - 1]) continue;
    wanted.push_back({governing_key(table, frames[i]), table.decode_of_rank[static_cast<std::size_t>(frames[i])]});
  }
  std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<DecodeRun> runs;
  for (const DecodeRun& next : wanted) {
    if (!runs.empty() && next.first <= runs.back().last + 1) {
      runs.back().last = std::max(runs.back().last, next.last);
    } else {
      runs.push_back(next);
    }
  }
  return runs;
}

}  // namespace troupe

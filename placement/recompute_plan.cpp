#include "placement/recompute_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace troupe::placement {
namespace {

constexpr std::array kLevels = {"none", "cheap", "attention", "full"};

JobConfig with_mode(JobConfig job, const std::string& mode) {
  job.activation_checkpoint.mode = mode;
  return job;
}

JobConfig with_counts(JobConfig job, const BlockCounts& counts) {
  job.activation_checkpoint.counts.assign(counts.begin(), counts.end());
  return job;
}

struct Upgrade {
  std::size_t from, to;
  /// work saved for a byte more
  double gain;
};

/// From more recompute to less, best first.
std::vector<Upgrade> upgrades(const std::array<LevelCost, 4>& levels) {
  std::vector<Upgrade> all;
  for (std::size_t from = 1; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < from; ++to) {
      const double saved = levels[from].replay_work - levels[to].replay_work;
      const auto more = static_cast<double>(std::max<std::int64_t>(1, levels[to].kept_bytes - levels[from].kept_bytes));
      if (saved > 0) all.push_back({from, to, saved / more});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Upgrade& a, const Upgrade& b) { return a.gain > b.gain; });
  return all;
}

}  // namespace

BlockCounts block_counts(const ActivationCheckpointConfig& config, std::int64_t blocks) {
  BlockCounts counts{};
  if (!config.counts.empty()) {
    TROUPE_CHECK(config.counts.size() == counts.size(), "one count for each level");
    std::copy(config.counts.begin(), config.counts.end(), counts.begin());
    return counts;
  }
  const auto level = std::find(kLevels.begin(), kLevels.end(), config.mode);
  counts[level == kLevels.end() ? counts.size() - 1 : static_cast<std::size_t>(level - kLevels.begin())] = blocks;
  return counts;
}

std::vector<std::size_t> block_levels(const BlockCounts& counts) {
  std::vector<std::size_t> levels;
  for (std::size_t level = counts.size(); level-- > 0;)
    levels.insert(levels.end(), static_cast<std::size_t>(counts[level]), level);
  return levels;
}

std::string recompute_text(const BlockCounts& counts) {
  std::string text;
  const auto used = std::count_if(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
  for (std::size_t level = 0; level < counts.size(); ++level) {
    if (counts[level] == 0) continue;
    if (used == 1) return kLevels[level];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[level], kLevels[level]);
  }
  return text;
}

std::string recompute_text(const Plan& plan) {
  if (plan.recompute_counts.empty()) return plan.activation_checkpoint;
  return recompute_text(block_counts({.mode = "auto", .counts = plan.recompute_counts}, 0));
}

JobConfig with_recompute(const JobConfig& job, const ModelCost& cost,
                         const std::function<bool(const JobConfig&)>& fits) {
  if (job.activation_checkpoint.mode != "auto" || !job.activation_checkpoint.counts.empty()) return job;
  if (const JobConfig kept = with_mode(job, "none"); fits(kept)) return kept;
  const JobConfig full = with_mode(job, "full");
  if (cost.blocks == 0 || !fits(full)) return full;
  BlockCounts counts = block_counts(full.activation_checkpoint, cost.blocks);
  const auto candidates = upgrades(cost.levels);
  const auto improve = [&]() -> std::optional<BlockCounts> {
    for (const Upgrade& upgrade : candidates) {
      BlockCounts next = counts;
      if (next[upgrade.from] == 0) continue;
      --next[upgrade.from], ++next[upgrade.to];
      if (fits(with_counts(job, next))) return next;
    }
    return std::nullopt;
  };
  while (const auto better = improve()) counts = *better;
  const std::string text = recompute_text(counts);
  const bool is_uniform = std::find(kLevels.begin(), kLevels.end(), text) != kLevels.end();
  return is_uniform ? with_mode(job, text) : with_counts(job, counts);
}

}  // namespace troupe::placement

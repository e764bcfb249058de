#include "workers/learner/rl/episode_summary.h"

#include <algorithm>

namespace troupe::workers {

void EpisodeSummary::add(const TrajectoryLayout& layout, std::span<const CollectedItem> items) {
  for (const CollectedItem& item : items) {
    const ConstTrajectoryView view(layout, item.bytes.data());
    sums_[kEnvSteps] += static_cast<double>(view.head().env_steps);
    sums_[kGivenUp] += static_cast<double>(view.head().given_up);
    for (std::int64_t t = 0; t < layout.calls; ++t) {
      const auto ended = view.ended(t);
      const auto lost = view.lost(t);
      for (std::size_t i = 0; i < ended.size(); ++i) {
        if (lost[i] != 0 && layout.is_first(static_cast<std::int64_t>(i))) ++sums_[kLostEnvs];
        if (ended[i] == 0) continue;
        const double total = view.episode_return(t)[i];
        const double length = view.episode_length(t)[i];
        ++sums_[kEpisodes];
        sums_[kReturn] += total;
        sums_[kLength] += length;
        sums_[kReward] += length > 0 ? total / length : 0;
        sums_[kSuccessOnce] += view.episode_success(t)[i] & 1;
        sums_[kSuccessAtEnd] += (view.episode_success(t)[i] >> 1) & 1;
      }
    }
  }
}

Result<void> EpisodeSummary::reduce(Collective& group) { return group.all_reduce_sum(sums_); }

std::map<std::string, double> EpisodeSummary::metrics(bool has_success) const {
  std::map<std::string, double> all = {{"env/num_trajectories", sums_[kEpisodes]},
                                       {"env/lost_rows", sums_[kLostEnvs]},
                                       {"env/given_up", sums_[kGivenUp]}};
  if (sums_[kEpisodes] == 0) return all;
  const auto mean = [&](std::size_t which) { return sums_[which] / sums_[kEpisodes]; };
  all["env/return"] = mean(kReturn);
  all["env/episode_len"] = mean(kLength);
  all["env/reward"] = mean(kReward);
  if (has_success) {
    all["env/success_once"] = mean(kSuccessOnce);
    all["env/success_at_end"] = mean(kSuccessAtEnd);
  }
  return all;
}

}  // namespace troupe::workers

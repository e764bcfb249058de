#include "workers/inference/agent/episode_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::workers {

std::map<std::string, double> evaluation_metrics(const std::vector<EvaluationEpisode>& records, bool has_success) {
  const auto lost = std::count_if(records.begin(), records.end(), [](const auto& r) { return !r.lost.empty(); });
  const auto count = static_cast<double>(records.size()) - static_cast<double>(lost);
  std::map<std::string, double> all = {{"eval/num_trajectories", count}, {"eval/lost", static_cast<double>(lost)}};
  if (count == 0) return all;
  for (const char* name : {"return", "return_std", "return_min", "return_max", "episode_len", "reward"})
    all[fmt::format("eval/{}", name)] = 0;
  if (has_success) all["eval/success_once"] = all["eval/success_at_end"] = 0;
  double squares = 0, least = std::numeric_limits<double>::infinity(), most = -least;
  for (const EvaluationEpisode& record : records) {
    if (!record.lost.empty()) continue;
    all["eval/return"] += record.total_return / count;
    all["eval/episode_len"] += static_cast<double>(record.length) / count;
    all["eval/reward"] += record.length > 0 ? record.total_return / static_cast<double>(record.length) / count : 0;
    least = std::min(least, record.total_return);
    most = std::max(most, record.total_return);
    if (!has_success) continue;
    all["eval/success_once"] += (record.success_once ? 1 : 0) / count;
    all["eval/success_at_end"] += (record.success_at_end ? 1 : 0) / count;
  }
  for (const EvaluationEpisode& record : records)
    if (record.lost.empty()) squares += std::pow(record.total_return - all["eval/return"], 2);
  all["eval/return_std"] = std::sqrt(squares / count);
  all["eval/return_min"] = least;
  all["eval/return_max"] = most;
  return all;
}

}  // namespace troupe::workers

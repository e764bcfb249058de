#include "workers/learner/rl/policy_evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "base/stopwatch.h"
#include "workers/inference/agent/episode_runner.h"

namespace troupe::workers {

namespace {

/// Numbers of rank 0 on every rank; `names` are the same everywhere.
Result<void> share(Collective& group, std::map<std::string, double>& metrics) {
  std::vector<double> values;
  for (const auto& [name, value] : metrics) values.push_back(value);
  TROUPE_TRY(group.broadcast(std::as_writable_bytes(std::span(values)), 0));
  std::size_t i = 0;
  for (auto& [name, value] : metrics) value = values[i++];
  return {};
}

}  // namespace

Result<std::map<std::string, double>> PolicyEvaluation::run(const TrainerSession& session, std::int64_t step,
                                                            const NormaliserState& normaliser) const {
  const bool last = step == config_.training.steps;
  const bool due = last || (step > 0 && config_.eval.every > 0 && step % config_.eval.every == 0);
  if (!due) return std::map<std::string, double>{};
  const auto begin = std::chrono::steady_clock::now();
  TROUPE_ASSIGN(auto views, session.engine->gather_views(agent_.policy->acting_units(), acting_weights(config_)));
  // Those of an evaluation that played; a number that rank 0 does not have stays NaN.
  std::map<std::string, double> metrics = evaluation_metrics({EvaluationEpisode{}}, agent_.spec().has_success);
  for (auto& [name, value] : metrics) value = std::numeric_limits<double>::quiet_NaN();
  PublishedWeights weights{
      .fence = session.plan.fence, .version = step, .views = std::move(views), .normaliser = normaliser, .flats = {}};
  std::vector<EvaluationEpisode> records;
  EpisodeOptions options = episode_options(config_.eval, config_.env);
  const std::int64_t all = options.episodes;
  // The other ranks wait: a slice at a time, so that no wait of theirs is as long as the whole evaluation.
  const std::int64_t slice = session.plan.world == 1 ? all : options.parallel;
  for (std::int64_t from = 0; from < all; from += slice) {
    if (session.plan.rank == 0) {
      options.episodes = std::min(slice, all - from);
      options.first_seed = config_.eval.seed + from;
      TROUPE_ASSIGN(const auto played, run_episodes(agent_, config_, weights, options));
      records.insert(records.end(), played.begin(), played.end());
    }
    TROUPE_TRY(session.group->barrier());
  }
  if (session.plan.rank == 0) {
    for (const auto& [name, value] : evaluation_metrics(records, agent_.spec().has_success)) metrics[name] = value;
  }
  metrics["time/eval"] = seconds_since(begin);
  TROUPE_TRY(share(*session.group, metrics));
  std::erase_if(metrics, [](const auto& metric) { return std::isnan(metric.second); });
  return metrics;
}

}  // namespace troupe::workers

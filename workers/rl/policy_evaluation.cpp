#include "workers/rl/policy_evaluation.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "workers/agent/episode_runner.h"

namespace troupe {

namespace {

/// Numbers of rank 0 on every rank; `names` are the same everywhere.
Result<void> share(Collective& group, std::map<std::string, double>& metrics) {
  std::vector<double> values;
  for (const auto& [name, value] : metrics) values.push_back(value);
  TROUPE_TRY(group.broadcast({.data = values.data(), .count = static_cast<std::int64_t>(values.size()), .dtype = DType::f64}, 0));
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
  TROUPE_ASSIGN(auto views, session.engine->gather_views(agent_.policy->acting_units()));
  // The names of the metrics are known before anything ran: ranks that do not play fill in zeros.
  std::map<std::string, double> metrics = evaluation_metrics({}, agent_.spec().has_success);
  if (session.plan.rank == 0) {
    PolicyWeights weights{.fence = session.plan.fence, .version = step, .views = std::move(views), .normaliser = normaliser, .flats = {}};
    const auto threads = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const EpisodeOptions options{.episodes = config_.eval.episodes, .first_seed = config_.eval.seed,
                                 .parallel = std::min<std::int64_t>(16, config_.eval.episodes), .threads = threads,
                                 .step_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(config_.env.step_timeout_s * 1000))};
    TROUPE_ASSIGN(const auto records, run_episodes(agent_, config_, weights, options));
    metrics = evaluation_metrics(records, agent_.spec().has_success);
  }
  metrics["time/eval"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  TROUPE_TRY(share(*session.group, metrics));
  return metrics;
}

}  // namespace troupe

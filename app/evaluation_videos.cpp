#include "app/evaluation_videos.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "workers/inference/agent/episode_runner.h"
#include "workers/inference/agent/episode_video.h"
#include "workers/inference/agent/load_agent.h"

namespace troupe::app {

Result<std::vector<std::string>> record_last_evaluation(const JobConfig& job, const RunStatistics& statistics,
                                                        const std::string& checkpoint, const std::string& folder) {
  if (job.eval.videos == 0 || statistics.curve("eval/return").empty()) return std::vector<std::string>{};
  const auto& successes = statistics.curve("eval/success_once");
  if (!successes.empty() && successes.back().value >= 1) return std::vector<std::string>{};
  TROUPE_ASSIGN(const auto envs, make_env_factory(job.env.id, {.profile = job.env.profile,
                                                               .options = job.env.options,
                                                               .max_steps = job.env.max_episode_steps}));
  if (envs->spec().cameras.empty()) return std::vector<std::string>{};
  TROUPE_ASSIGN(const LoadedAgent loaded, load_agent(checkpoint));
  const EpisodeOptions options{
      .episodes = job.eval.episodes,
      .first_seed = job.eval.seed,
      .parallel = std::min<std::int64_t>(16, job.eval.episodes),
      .threads = std::max(1U, std::thread::hardware_concurrency()),
      .step_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(job.env.step_timeout_s * 1000)),
      .keep_actions = job.eval.videos};
  TROUPE_ASSIGN(const auto records, run_episodes(loaded.agent, loaded.job, loaded.weights, options));
  return write_episode_videos(*loaded.agent.envs, records, folder);
}

}  // namespace troupe::app

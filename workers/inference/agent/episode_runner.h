#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "configs/job_config.h"
#include "workers/inference/agent/agent.h"
#include "workers/inference/agent/episode_player.h"
#include "workers/inference/agent/episode_record.h"
#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// What an evaluation runs.
struct EpisodeOptions {
  std::int64_t episodes = 100;
  /// Episode k has seed first_seed + k.
  std::int64_t first_seed = 1'000'000;
  /// Environments at once; fixed, so that results do not depend on threads.
  std::int64_t parallel = 16;
  /// Threads that step environments; the policy is called on the thread of run_episodes.
  std::int64_t threads = 1;
  /// Longest time of one control step of all environments together (env.step_timeout_s).
  std::chrono::milliseconds step_timeout{30'000};
  /// Episodes whose actions are kept, the worst: those without success, first seeds first; where the environment
  /// knows no success, those with the lowest returns.
  std::int64_t keep_actions = 0;
  /// Episodes that have ended.
  Progress progress{};
  /// When an evaluation goes on after a crash: episodes that have ended and are not played again, and seeds under way
  /// at the crash, which are repeated at the end, alone.
  std::vector<EvaluationEpisode> ended_before = {};
  std::vector<std::int64_t> suspects = {};
  /// Told of every episode before it begins (`repeats`: alone), and when it has ended or is lost. May be empty.
  std::function<void(std::int64_t seed, bool repeats)> on_begin = {};
  std::function<void(const EvaluationEpisode& episode)> on_end = {};
  /// True ends the evaluation before the next step. May be empty.
  std::function<bool()> is_cancelled = {};
};

/// What a job asks for: eval.episodes from eval.seed on, at most 16 at once and on every core, env.step_timeout_s. No
/// actions are kept.
EpisodeOptions episode_options(const EvalConfig& eval, const EnvConfig& env);

/// Makes environments of `env`, which `spec` describes, and lets the player act in every episode; environments take the
/// next seed as soon as they are done; steps, limits and resets are those of training (env/env_block.h). Records in
/// order of seed; the same bits for any number of threads.
///
/// An environment that fails, or makes a step of all of them longer than step_timeout, costs its episode, which is
/// repeated at the end, alone, and then lost (EvaluationEpisode::lost). Environments that hang are left behind with
/// their threads; at the third time whatever is not played yet is lost. Errors: failed_precondition (no time limit);
/// those of making environments, of check_same_spec and of the player; internal (its answer is not finite); cancelled.
Result<std::vector<EvaluationEpisode>> run_episodes(EpisodePlayer& player, const EnvSpec& spec, const EnvConfig& env,
                                                    const EpisodeOptions& options);
/// The same in job.env, which must be what the agent was made for, with the deterministic policy and frozen statistics.
Result<std::vector<EvaluationEpisode>> run_episodes(const Agent& agent, const JobConfig& job,
                                                    const PublishedWeights& weights, const EpisodeOptions& options);

}  // namespace troupe::workers

// `troupe eval CKPT` of a policy that was trained in simulators: it plays episodes, alone or against another on the
// same seeds.
#include "app/eval_episodes_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>

#include "app/command_progress.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/version.h"
#include "workers/checkpoint/commit.h"
#include "workers/inference/agent/episode_report.h"
#include "workers/inference/agent/episode_runner.h"
#include "workers/inference/agent/episode_video.h"
#include "workers/inference/agent/load_agent.h"

namespace troupe::app {

namespace {

constexpr std::int64_t kMostEpisodes = 1 << 24;  // as eval.episodes

/// What is played, from the command line and, where it says nothing, from the first checkpoint's job.
struct EvaluationPlan {
  EpisodeOptions episodes;
  std::int64_t videos = 0;
  std::string folder;
};

Result<std::int64_t> number_of_episodes(const EvalOptions& options, const JobConfig& job) {
  if (options.episodes.empty()) return job.eval.episodes;
  if (options.episodes.size() > 1) {
    return Error{
        Errc::invalid_argument,
        fmt::format("--episodes names {} numbers; a policy that plays takes one, how many episodes (lists of recorded "
                    "episodes go with --open-loop)",
                    options.episodes.size())};
  }
  const std::int64_t episodes = options.episodes.front();
  if (episodes >= 1 && episodes <= kMostEpisodes) return episodes;
  return Error{Errc::invalid_argument,
               fmt::format("--episodes is {}; wanted how many episodes to play, 1 to {}", episodes, kMostEpisodes)};
}

Result<EvaluationPlan> make_evaluation_plan(const EvalOptions& options, const CheckpointPlace& place,
                                            const JobConfig& job) {
  if (!options.data.empty()) return Error{Errc::invalid_argument, "--data names recordings; it goes with --open-loop"};
  EvalConfig eval = job.eval;
  TROUPE_ASSIGN(eval.episodes, number_of_episodes(options, job));
  if (options.seed >= 0) eval.seed = options.seed;
  if (options.videos >= 0) eval.videos = options.videos;
  TROUPE_ASSIGN(std::string folder, evaluation_folder(place, options.out));
  EpisodeOptions episodes = episode_options(eval, job.env);
  if (options.policy.threads > 0) episodes.threads = options.policy.threads;
  return EvaluationPlan{.episodes = episodes, .videos = eval.videos, .folder = std::move(folder)};
}

/// The environment that both policies play, the second with its own observations and action chunks.
EnvConfig env_of_other(const EnvConfig& first, std::int64_t max_steps, const JobConfig& other) {
  EnvConfig env = moved_env(other.env, first.id);
  env.options = first.options;
  env.max_episode_steps = max_steps;
  return env;
}

/// Plays and describes.
Result<PlayedEpisodes> play(const LoadedAgent& loaded, const std::string& folder, EpisodeOptions options) {
  TROUPE_ASSIGN(const std::string manifest, read_file(folder + "/manifest.json"));
  const EnvConfig& env = loaded.job.env;
  PlayedEpisodes played{.checkpoint = folder,
                        .digest = xxh3_128_hex(std::as_bytes(std::span(manifest))),
                        .job = loaded.job.job.name,
                        .step = loaded.weights.version,
                        .profile = env.profile,
                        .chunk = env.chunk,
                        .exec_steps = env.exec_steps == 0 ? env.chunk : env.exec_steps,
                        .records = {},
                        .videos = {}};
  CommandProgress line("eval");
  options.progress = line.of_units("episodes");
  TROUPE_ASSIGN(played.records, run_episodes(loaded.agent, loaded.job, loaded.weights, options));
  return played;
}

/// Writes videos of the kept failures of the first policy.
Result<void> record_failures(const LoadedAgent& loaded, const EvaluationPlan& plan, PlayedEpisodes& played) {
  if (plan.videos == 0) return {};
  if (loaded.agent.spec().cameras.empty()) {
    fmt::print(stderr, "note: {} has no camera, so no videos are written\n", loaded.agent.spec().id);
    return {};
  }
  TROUPE_ASSIGN(const auto envs,
                make_described_env_factory(loaded.job.env, loaded.agent.spec(), "the policy's environment"));
  TROUPE_TRY(write_episode_videos(envs, played.records, plan.folder + "/videos"));
  for (const EvaluationEpisode& record : played.records) {
    if (!record.actions.empty()) played.videos[record.seed] = "videos/" + episode_video_name(record);
  }
  return {};
}

Result<LoadedAgent> load_first(const EvalOptions& options, const CheckpointPlace& place) {
  TROUPE_ASSIGN(const JobConfig job, read_rl_job(place.folder));
  const std::string& id = options.env.empty() ? job.env.id : options.env;
  return load_agent(place.folder, moved_env(job.env, id), options.policy.weights);
}

Result<LoadedAgent> load_other(const EvalOptions& options, const LoadedAgent& first, std::string& folder) {
  TROUPE_ASSIGN(const CheckpointPlace place, find_checkpoint(options.compare, options.run_root));
  folder = place.folder;
  TROUPE_ASSIGN(const JobConfig job, read_rl_job(folder));
  return load_agent(folder, env_of_other(first.job.env, first.agent.spec().max_steps, job));
}

/// Errors: internal (every episode was lost).
Result<void> check_played(const PlayedEpisodes& played) {
  for (const EvaluationEpisode& episode : played.records) {
    if (episode.lost.empty()) return {};
  }
  return Error{Errc::internal, fmt::format("{}: no episode was played; the first was lost: {}", played.checkpoint,
                                           played.records.front().lost)};
}

Result<void> evaluate_episodes(const EvalOptions& options, const CheckpointPlace& place) {
  const auto first_loaded = load_first(options, place);
  if (!first_loaded) return suggest_older(first_loaded.error(), place.folder);
  const LoadedAgent& first = *first_loaded;
  std::optional<LoadedAgent> other;
  std::string other_folder;
  if (!options.compare.empty()) {
    auto loaded = load_other(options, first, other_folder);
    if (!loaded) return suggest_older(loaded.error(), other_folder).with("--compare");
    other = std::move(*loaded);
  }
  TROUPE_ASSIGN(const EvaluationPlan plan, make_evaluation_plan(options, place, first.job));
  const auto begin = std::chrono::steady_clock::now();
  EpisodeOptions with_actions = plan.episodes;
  with_actions.keep_actions = first.agent.spec().cameras.empty() ? 0 : plan.videos;
  EvaluationReport report{.spec = first.agent.spec(),
                          .options = first.job.env.options,
                          .version = kTroupeVersion,
                          .parallel = plan.episodes.parallel,
                          .first = {},
                          .second = {}};
  TROUPE_ASSIGN(report.first, play(first, place.folder, with_actions));
  if (other) {
    TROUPE_ASSIGN(report.second, play(*other, other_folder, plan.episodes));
  }
  const double seconds = seconds_since(begin);
  TROUPE_TRY(record_failures(first, plan, report.first));
  const std::string json = episodes_json(report);
  TROUPE_TRY(write_file_durably(plan.folder + "/eval.json", json));
  TROUPE_TRY(write_file_durably(plan.folder + "/results.md", episodes_markdown(report)));
  fmt::print("{}", options.json ? json : episodes_table(report));
  TROUPE_TRY(check_played(report.first));
  if (report.second) TROUPE_TRY(check_played(*report.second));
  if (options.json) return {};
  std::int64_t steps = 0;
  for (const auto* played : {&report.first, report.second ? &*report.second : nullptr}) {
    for (std::size_t i = 0; played != nullptr && i < played->records.size(); ++i) steps += played->records[i].length;
  }
  fmt::print("  time      {:.1f} s, {:.0f} env steps/s\nwritten: {}/eval.json, results.md", seconds,
             static_cast<double>(steps) / std::max(seconds, 1e-9), plan.folder);
  fmt::print("{}\n", report.first.videos.empty()
                         ? ""
                         : fmt::format(", {} videos of {}", report.first.videos.size(),
                                       report.spec.has_success ? "failures" : "the lowest returns"));
  return {};
}

}  // namespace

int eval_episodes_command(const EvalOptions& options, const CheckpointPlace& place) {
  const auto evaluated = evaluate_episodes(options, place);
  return evaluated ? static_cast<int>(kOk) : complain(evaluated.error());
}

}  // namespace troupe::app

// `troupe eval CKPT` of a policy that plays episodes, alone or against another on the same seeds: one that was trained
// in simulators, or with --env DreamZero.
#include "app/eval_episodes_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/command_progress.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/version.h"
#include "env/env_options.h"
#include "env/registry/registry.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/agent/episode_report.h"
#include "workers/inference/agent/episode_runner.h"
#include "workers/inference/agent/episode_video.h"
#include "workers/inference/agent/load_agent.h"
#include "workers/inference/evaluate/closed_loop.h"
#include "workers/inference/policy/load_policy.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::app {

Result<bool> plays_episodes(const CheckpointPlace& place) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(place.folder));
  if (kind != CheckpointKind::troupe) return false;
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
  TROUPE_ASSIGN(const JobConfig job, job_of(manifest, place.folder));
  return trains_agent(job);
}

namespace {

constexpr std::int64_t kMostEpisodes = 1 << 24;  // as eval.episodes

/// What is played, from the command line and, where it says nothing, from the first checkpoint's job.
struct EvaluationPlan {
  EpisodeOptions episodes;
  std::int64_t videos = 0;
  std::string folder;
};

Result<std::int64_t> number_of_episodes(const EvalOptions& options, const EvalConfig& eval) {
  if (options.episodes.empty()) return eval.episodes;
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

/// A policy that is ready to play, and what the report says of it.
struct Contestant {
  EnvConfig env;
  EnvSpec spec;
  /// Of the checkpoint's job.
  EvalConfig eval;
  /// Without records.
  PlayedEpisodes about;
  std::function<Result<std::vector<EvaluationEpisode>>(const EpisodeOptions&)> play;
  /// It takes an instruction with each call.
  bool is_told = false;
};

Result<PlayedEpisodes> about_checkpoint(const std::string& folder) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(folder));
  const char* described_by = kind == CheckpointKind::troupe ? "manifest.json" : "config.json";
  TROUPE_ASSIGN(const std::string text, read_file(fmt::format("{}/{}", folder, described_by)));
  return PlayedEpisodes{.checkpoint = folder,
                        .digest = xxh3_128_hex(std::as_bytes(std::span(text))),
                        .job = {},
                        .profile = {},
                        .records = {},
                        .videos = {}};
}

/// A policy of reinforcement learning in `env`.
Result<Contestant> agent_contestant(const std::string& folder, const EnvConfig& env, WeightSet weights) {
  TROUPE_ASSIGN(PlayedEpisodes about, about_checkpoint(folder));
  TROUPE_ASSIGN(LoadedAgent agent, load_agent(folder, env, weights));
  const auto loaded = std::make_shared<const LoadedAgent>(std::move(agent));
  about.job = loaded->job.job.name;
  about.step = loaded->weights.version;
  about.profile = env.profile;
  about.chunk = env.chunk;
  about.exec_steps = env.executed();
  return Contestant{.env = loaded->job.env,
                    .spec = loaded->agent.spec(),
                    .eval = loaded->job.eval,
                    .about = std::move(about),
                    .play = [loaded](const EpisodeOptions& options) {
                      return run_episodes(loaded->agent, loaded->job, loaded->weights, options);
                    }};
}

EnvConfig plain_env(const std::string& id) {
  EnvConfig env;
  env.id = id;
  return env;
}

/// DreamZero in `env`.
Result<Contestant> robot_contestant(const std::string& folder, const EnvConfig& env, const std::string& instruction,
                                    const PolicyOptions& options) {
  TROUPE_ASSIGN(PlayedEpisodes about, about_checkpoint(folder));
  EvalConfig eval;
  if (auto manifest = read_manifest(folder)) {
    TROUPE_ASSIGN(const JobConfig job, job_of(*manifest, folder));
    about.job = job.job.name;
    about.step = manifest->step;
    eval = job.eval;
  }
  TROUPE_ASSIGN(const PolicySpec robot, read_policy_spec(folder, options));
  about.chunk = robot.window.action_horizon;
  about.exec_steps = robot.window.macro_stride;
  about.options = described(options);
  if (!instruction.empty()) about.options["instruction"] = instruction;
  TROUPE_ASSIGN(EnvSpec spec, env_spec_of(env));
  TROUPE_ASSIGN(std::shared_ptr<Policy> policy, load_policy(folder, options));
  TROUPE_ASSIGN(const std::shared_ptr<ClosedLoopPlayer> player,
                ClosedLoopPlayer::make(*policy, robot, spec, instruction));
  return Contestant{
      .env = env,
      .spec = spec,
      .eval = eval,
      .about = std::move(about),
      .play = [policy, player, spec, env](const EpisodeOptions& how) { return run_episodes(*player, spec, env, how); },
      .is_told = true};
}

Result<EvaluationPlan> make_evaluation_plan(const EvalOptions& options, const CheckpointPlace& place,
                                            const Contestant& first) {
  if (!options.data.empty()) return Error{Errc::invalid_argument, "--data names recordings; it goes with --open-loop"};
  EvalConfig eval = first.eval;
  TROUPE_ASSIGN(eval.episodes, number_of_episodes(options, eval));
  if (options.seed >= 0) eval.seed = options.seed;
  if (options.videos >= 0) eval.videos = options.videos;
  TROUPE_ASSIGN(std::string folder, evaluation_folder(place, options.out));
  if (options.out.empty() && !first.about.options.empty()) {
    folder += "/episodes";  // beside the comparison with recordings, whose files have the same names
    TROUPE_TRY(make_folders(folder));
  }
  EpisodeOptions episodes = episode_options(eval, first.env);
  if (options.policy.threads > 0) episodes.threads = options.policy.threads;
  return EvaluationPlan{.episodes = episodes, .videos = eval.videos, .folder = std::move(folder)};
}

/// The environment that both policies play, the second with its own observations and action chunks.
EnvConfig env_of_other(const EnvConfig& first, std::int64_t max_steps, const EnvConfig& other) {
  EnvConfig env = moved_env(other, first.id);
  std::erase_if(env.options, [](const auto& option) { return !changes_observation(option.first); });
  for (const auto& option : first.options) {
    if (!changes_observation(option.first)) env.options.insert(option);
  }
  env.max_episode_steps = max_steps;
  return env;
}

/// Plays and describes.
Result<PlayedEpisodes> play(const Contestant& contestant, EpisodeOptions options) {
  PlayedEpisodes played = contestant.about;
  CommandProgress line("eval");
  options.progress = line.of_units("episodes");
  TROUPE_ASSIGN(played.records, contestant.play(options));
  return played;
}

/// Writes videos of the kept failures of the first policy.
Result<void> record_failures(const Contestant& first, const EvaluationPlan& plan, PlayedEpisodes& played) {
  if (plan.videos == 0) return {};
  if (first.spec.cameras.empty()) {
    fmt::print(stderr, "note: {} has no camera, so no videos are written\n", first.spec.id);
    return {};
  }
  TROUPE_ASSIGN(const auto envs, make_described_env_factory(first.env, first.spec, "the policy's environment"));
  TROUPE_TRY(write_episode_videos(envs, played.records, plan.folder + "/videos"));
  for (const EvaluationEpisode& record : played.records) {
    if (!record.actions.empty()) played.videos[record.seed] = "videos/" + episode_video_name(record);
  }
  return {};
}

Result<Contestant> load_first(const EvalOptions& options, const CheckpointPlace& place) {
  TROUPE_ASSIGN(const bool is_agent, plays_episodes(place));
  if (!is_agent) return robot_contestant(place.folder, plain_env(options.env), options.instruction, options.policy);
  TROUPE_ASSIGN(const JobConfig job, read_rl_job(place.folder));
  const std::string& id = options.env.empty() ? job.env.id : options.env;
  return agent_contestant(place.folder, moved_env(job.env, id), options.policy.weights);
}

Result<Contestant> load_other(const EvalOptions& options, const Contestant& first, std::string& folder) {
  TROUPE_ASSIGN(const CheckpointPlace place, find_checkpoint(options.compare, options.run_root));
  folder = place.folder;
  TROUPE_ASSIGN(const bool is_agent, plays_episodes(place));
  if (is_agent) {
    TROUPE_ASSIGN(const JobConfig job, read_rl_job(folder));
    return agent_contestant(folder, env_of_other(first.env, first.spec.max_steps, job.env), WeightSet::model);
  }
  PolicyOptions policy = options.policy;
  policy.weights = WeightSet::model;
  return robot_contestant(folder, env_of_other(first.env, first.spec.max_steps, plain_env(first.env.id)),
                          options.instruction, policy);
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
  const Contestant& first = *first_loaded;
  std::optional<Contestant> other;
  std::string other_folder;
  if (!options.compare.empty()) {
    auto loaded = load_other(options, first, other_folder);
    if (!loaded) return suggest_older(loaded.error(), other_folder).with("--compare");
    other = std::move(*loaded);
  }
  if (!options.instruction.empty() && !first.is_told && !(other && other->is_told)) {
    return invalid_argument(
        fmt::format("--instruction is what a fine-tuned DreamZero is told; {} learned in {}, with the words of its job",
                    place.folder, first.env.id));
  }
  TROUPE_ASSIGN(const EvaluationPlan plan, make_evaluation_plan(options, place, first));
  const auto begin = std::chrono::steady_clock::now();
  EpisodeOptions with_actions = plan.episodes;
  with_actions.keep_actions = first.spec.cameras.empty() ? 0 : plan.videos;
  EvaluationReport report{.spec = first.spec,
                          .options = first.env.options,
                          .version = kTroupeVersion,
                          .parallel = plan.episodes.parallel,
                          .first = {},
                          .second = {}};
  TROUPE_ASSIGN(report.first, play(first, with_actions));
  if (other) {
    TROUPE_ASSIGN(report.second, play(*other, plan.episodes));
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

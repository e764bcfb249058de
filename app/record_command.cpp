// `troupe record ENV --out DIR`: demonstrations of a controller written by hand, as a LeRobot dataset (docs/env.md).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "base/shell_word.h"
#include "base/stopwatch.h"
#include "configs/loader.h"
#include "workers/record/record_demonstrations.h"

namespace troupe::app {
namespace {

/// "max_episode_steps=50", "sparse=true", as a job has them in env and env.options.
Result<EnvOptions> env_options_of(const std::vector<std::string>& words) {
  EnvOptions options;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{
          Errc::invalid_argument,
          fmt::format("'{}'; wanted an option of the environment as name=value, such as max_episode_steps=50", word)};
    }
    std::string name = word.substr(0, equals);
    for (const char* prefix : {"env.", "options."}) {
      if (name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
    }
    const std::string value = word.substr(equals + 1);
    if (name == "profile") {
      options.profile = value;
    } else if (name != "max_episode_steps") {
      options.options[name] = value;
    } else {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.max_steps);
      if (error != std::errc() || end != value.data() + value.size() || options.max_steps < 1) {
        return Error{Errc::invalid_argument,
                     fmt::format("max_episode_steps is '{}'; wanted a number of control steps from 1", value)};
      }
    }
  }
  return options;
}

/// The recipe that learns from a recording.
constexpr const char* kTraining = "rl_arm7_reach_sft";

/// What to add to it where a recording has no episodes beyond those that it holds out.
std::string held_out(std::int64_t episodes) {
  const LoadOutcome recipe = load_job(kTraining, {});
  const auto& held = recipe.config->job.data.eval_episodes;
  if (episodes > *std::max_element(held.begin(), held.end()) + 1) return {};
  return episodes > 1 ? " 'data.eval_episodes=[0]'" : " 'data.eval_episodes=[]' eval.every=0";
}

void print_summary(const RecordOptions& options, const RecordingReport& r, double seconds) {
  fmt::print("{}: LeRobot {}, {} episodes of {} tried, {} frames at {:g} Hz, {} tasks\n", options.out, options.version,
             r.episodes, r.tried, r.frames, r.fps, r.tasks);
  fmt::print("success  {} of {} ({:.1f} %); {}\n", r.solved, r.tried,
             100.0 * static_cast<double>(r.solved) / static_cast<double>(r.tried),
             options.keep == "all" ? "all were kept" : fmt::format("{} were dropped", r.tried - r.episodes));
  fmt::print("time     {:.1f} s\n", seconds);
  fmt::print("next     troupe run {}{} {}{}\n", kTraining,
             options.env == "arm7/reach-v1" ? "" : " env.id=" + options.env, shell_word("data.sets=" + options.out),
             held_out(r.episodes));
}

Result<void> record(const RecordOptions& options) {
  RecordingRequest request{.env = options.env,
                           .out = options.out,
                           .episodes = options.episodes,
                           .seed = static_cast<std::uint64_t>(options.seed),
                           .is_v30 = options.version == "v3.0",
                           .keeps_all = options.keep == "all",
                           .cameras = options.cameras,
                           .progress = {}};
  TROUPE_ASSIGN(request.env_options, env_options_of(options.words));
  const auto begin = std::chrono::steady_clock::now();
  const auto watched = [&] {
    CommandProgress line("record");
    request.progress = line.of_parts();
    return record_demonstrations(request);
  };
  TROUPE_ASSIGN(const RecordingReport report, watched());
  print_summary(options, report, seconds_since(begin));
  return {};
}

}  // namespace

int record_command(const RecordOptions& options) {
  const auto recorded = record(options);
  return recorded ? static_cast<int>(kOk) : complain_of_data(recorded.error());
}

}  // namespace troupe::app

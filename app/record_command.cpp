// `troupe record ENV --out DIR`: demonstrations of a controller written by hand, as a LeRobot dataset (docs/env.md).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/env_option_words.h"
#include "app/exit_code.h"
#include "base/shell_word.h"
#include "base/stopwatch.h"
#include "configs/loader.h"
#include "workers/record/record_demonstrations.h"

namespace troupe::app {
namespace {

/// The recipe that learns from a recording.
std::string training_recipe(const RecordOptions& options) {
  const auto draws = [&](const char* camera) {
    return std::find(options.cameras.begin(), options.cameras.end(), camera) != options.cameras.end();
  };
  return draws("front") && draws("side") ? "rl_arm7_reach_pixels_sft" : "rl_arm7_reach_sft";
}

/// What to add to it where a recording has no episodes beyond those that it holds out.
std::string held_out(const std::string& training, std::int64_t episodes) {
  const LoadOutcome recipe = load_job(training, {});
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
  const std::string training = training_recipe(options);
  fmt::print("next     troupe run {}{} {}{}\n", training,
             options.env == "arm7/reach-v1" ? "" : " env.id=" + options.env, shell_word("data.sets=" + options.out),
             held_out(training, r.episodes));
}

Result<void> record(const RecordOptions& options) {
  RecordingRequest request{.env = options.env,
                           .out = options.out,
                           .episodes = options.episodes,
                           .seed = static_cast<std::uint64_t>(options.seed),
                           .is_v30 = options.version == "v3.0",
                           .keeps_all = options.keep == "all",
                           .cameras = options.cameras,
                           .image_size = options.image_size,
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

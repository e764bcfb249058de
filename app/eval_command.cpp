// `troupe eval CKPT`: with --open-loop what a policy would have done where recordings say what was done, else what it
// does in its environment.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/confined.h"
#include "app/eval_episodes_command.h"
#include "app/exit_code.h"
#include "base/file_io.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/evaluate/checkpoint_evaluation.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/report/run/run_page.h"
#include "workers/report/run/tensorboard_pages.h"

namespace troupe::app {

namespace {

/// Returns predictions that were not finite.
Result<std::int64_t> evaluate_open_loop(const EvalOptions& options, const CheckpointPlace& place) {
  TROUPE_ASSIGN(const std::string folder, evaluation_folder(place, options.out));
  const auto watched = [&] {
    CommandProgress line("eval");
    const auto say_so = [&] {
      line.print(
          "note: no episode was held out and none is named (--episodes), so all of them are taken, trained on or not");
    };
    return evaluate_checkpoint(place,
                               {.data = options.data,
                                .episodes = options.episodes,
                                .windows = options.windows,
                                .policy = options.policy,
                                .on_training_episodes = say_so,
                                .progress = line.of_units("windows")},
                               folder);
  };
  TROUPE_ASSIGN(const CheckpointEvaluation done, watched());
  if (!place.run.empty()) {
    TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
    TROUPE_TRY(add_picture_page(RunDirectory(place.run), manifest.step, folder + "/open_loop.png"));
  }
  fmt::print("{}", options.json ? open_loop_json(done.result, done.subject) : open_loop_table(done.result));
  if (!options.json) fmt::print("written: {0}/eval.json, {0}/open_loop.png\n", folder);
  return done.result.overall.non_finite;
}

/// What was evaluated belongs on the run's page. That it could not be written is no failure of the evaluation.
void renew_page(const CheckpointPlace& place) {
  const RunDirectory run(place.run);
  if (place.run.empty() || !std::filesystem::exists(run.config())) return;
  if (const auto written = write_run_page(run); !written)
    fmt::print(stderr, "warning: report.html is not renewed: {}\n", written.error().message());
}

/// Reads the checkpoint with its base, what its job names and the recordings; writes the run's folder or --out.
SandboxRules rules_of(const EvalOptions& options, const CheckpointPlace& place) {
  SandboxRules rules{.readable = {place.folder}};
  if (!options.data.empty()) allow_dataset(rules, options.data);
  if (const auto manifest = read_manifest(place.folder)) {
    allow_named(rules, manifest->config);
    if (const auto base = base_folder(place.folder, *manifest); base && !manifest->base.empty())
      rules.readable.push_back(*base);
    if (const auto job = job_of(*manifest, place.folder)) {
      for (const DataSetConfig& set : job->data.sets) allow_dataset(rules, set.path);
    }
  }
  if (!place.run.empty()) rules.writable.push_back(place.run);
  if (!options.out.empty() && make_folders(options.out)) rules.writable.push_back(options.out);
  allow_named(rules, "");
  return rules;
}

}  // namespace

int eval_command(const EvalOptions& options) {
  const auto place = find_checkpoint(options.checkpoint, options.run_root);
  if (!place) return complain(place.error());
  const auto plays = plays_episodes(*place);
  if (!plays) return complain(plays.error());
  if (options.open_loop && *plays) {
    return complain(
        {Errc::invalid_argument,
         fmt::format(
             "{} is the checkpoint of a policy for an environment; --open-loop compares DreamZero with recordings. "
             "Let it play instead: troupe eval {} --episodes 100",
             place->folder, options.checkpoint)});
  }
  if (!options.open_loop && (*plays || !options.env.empty())) {
    const int code = eval_episodes_command(options, *place);
    if (code == kOk) renew_page(*place);
    return code;
  }
  if (!options.open_loop) {
    return complain(
        {Errc::invalid_argument,
         "say what is evaluated: --open-loop compares predicted with recorded actions, --env ID lets the policy "
         "play, such as --env arm7/reach-v1"});
  }
  if (!options.instruction.empty())
    return complain({Errc::invalid_argument, "--instruction is for episodes that are played; --open-loop plays none"});
  return run_confined(options.data.empty() ? "the recordings" : options.data, rules_of(options, *place), [&] {
    const auto non_finite = evaluate_open_loop(options, *place);
    if (!non_finite) return complain(suggest_older(non_finite.error(), place->folder));
    renew_page(*place);
    if (*non_finite == 0) return static_cast<int>(kOk);
    fmt::print(stderr, "error: {} predicted values are not finite\n", *non_finite);
    return static_cast<int>(kFailed);
  });
}

}  // namespace troupe::app

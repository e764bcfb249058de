// `troupe eval CKPT`: with --open-loop what a policy would have done where recordings say what was done, else what it
// does in its environment.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/commands.h"
#include "app/eval_episodes_command.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "data/dataset.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/evaluate/open_loop.h"
#include "workers/inference/evaluate/open_loop_report.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/inference/policy/load_policy.h"
#include "workers/inference/policy/read_spec.h"
#include "workers/report/run/tensorboard_pages.h"

namespace troupe::app {

namespace {

namespace fs = std::filesystem;

/// The data a checkpoint is evaluated on, and the episodes that its job held out.
struct EvalData {
  DataConfig data;
  std::vector<std::int64_t> held_out;
};

Result<EvalData> choose_data(const CheckpointPlace& place, const PolicySpec& spec, const EvalOptions& options) {
  EvalData out;
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(place.folder));
  if (kind == CheckpointKind::troupe) {
    TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
    TROUPE_ASSIGN(const JobConfig job, job_of(manifest, place.folder));
    out.data = job.data;
    std::error_code code;
    // One dataset of the job's: the one that --data names, else the first.
    std::vector<DataSetConfig>& sets = out.data.sets;
    const auto named =
        options.data.empty() ? sets.begin() : std::find_if(sets.begin(), sets.end(), [&](const DataSetConfig& set) {
          return fs::equivalent(options.data, set.path, code);
        });
    if (named != sets.end()) {
      out.held_out = named->eval_episodes.empty() ? out.data.eval_episodes : named->eval_episodes;
      std::iter_swap(sets.begin(), named);
    }
    sets.resize(1);
  } else {
    if (options.data.empty()) {
      return Error{Errc::invalid_argument, fmt::format("{} names no dataset; name one with --data", place.folder)};
    }
    out.data.embodiment = spec.embodiment;
    out.data.window = spec.window;
    out.data.image = spec.image;
    out.data.sets.resize(1);
  }
  if (!options.data.empty()) out.data.sets.front().path = options.data;
  // Nothing is trained here: every episode may be looked at, and run_open_loop is told which.
  out.data.eval_episodes.clear();
  out.data.sets.front().eval_episodes.clear();
  return out;
}

std::map<std::string, OpenLoopSubject::Option> described(const EvalOptions& options) {
  const PolicyOptions& p = options.policy;
  return {{"steps", p.steps}, {"cfg_scale", p.cfg_scale},       {"noise_seed", p.noise_seed}, {"skip", p.skip},
          {"dtype", p.dtype}, {"sign_gripper", p.sign_gripper}, {"windows", options.windows}};
}

/// Returns predictions that were not finite.
Result<std::int64_t> evaluate_open_loop(const EvalOptions& options, const CheckpointPlace& place) {
  TROUPE_ASSIGN(const PolicySpec spec, read_policy_spec(place.folder, options.policy));
  TROUPE_ASSIGN(EvalData chosen, choose_data(place, spec, options));
  TROUPE_ASSIGN(const std::string folder, evaluation_folder(place, options.out));
  TROUPE_ASSIGN(const auto dataset, Dataset::open(chosen.data, spec.model));
  chosen.data.embodiment = dataset->spec().embodiment;  // with its own strides
  chosen.data.window = dataset->spec().window;
  TROUPE_ASSIGN(const auto policy, load_policy(place.folder, options.policy));

  OpenLoopOptions how{.episodes = options.episodes.empty() ? chosen.held_out : options.episodes,
                      .windows = options.windows,
                      .progress = {}};
  if (how.episodes.empty()) {
    fmt::print(
        stderr,
        "note: no episode was held out and none is named (--episodes), so all of them are taken, trained on or not\n");
  }
  TROUPE_ASSIGN(const OpenLoopResult result, run_open_loop(*policy, *dataset, chosen.data, how));
  const OpenLoopSubject subject{.checkpoint = place.folder,
                                .dataset = dataset->root(),
                                .embodiment = policy->info().embodiment,
                                .options = described(options)};
  const std::string json = open_loop_json(result, subject);
  TROUPE_TRY(write_file_durably(folder + "/eval.json", json));
  TROUPE_TRY(draw_open_loop(folder + "/open_loop.png", result, subject));
  if (!place.run.empty()) {
    TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
    TROUPE_TRY(add_picture_page(RunDirectory(place.run), manifest.step, folder + "/open_loop.png"));
  }
  fmt::print("{}", options.json ? json : open_loop_table(result));
  if (!options.json) fmt::print("written: {0}/eval.json, {0}/open_loop.png\n", folder);
  return result.overall.non_finite;
}

/// Whether a checkpoint's policy was trained for an environment. A folder that says nothing of the kind is not.
Result<bool> plays_episodes(const CheckpointPlace& place) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(place.folder));
  if (kind != CheckpointKind::troupe) return false;
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
  TROUPE_ASSIGN(const JobConfig job, job_of(manifest, place.folder));
  return trains_agent(job);
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
  if (!options.open_loop && (*plays || !options.env.empty())) return eval_episodes_command(options, *place);
  if (!options.open_loop) {
    return complain(
        {Errc::invalid_argument, "say what is evaluated: --open-loop compares predicted with recorded actions"});
  }
  const auto non_finite = evaluate_open_loop(options, *place);
  if (!non_finite) return complain(non_finite.error());
  if (*non_finite == 0) return kOk;
  fmt::print(stderr, "error: {} predicted values are not finite\n", *non_finite);
  return kFailed;
}

}  // namespace troupe::app

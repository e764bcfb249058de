#include "workers/inference/evaluate/checkpoint_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/durable_file.h"
#include "data/dataset.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/policy/load_policy.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace {

/// The data a checkpoint is evaluated on, and the episodes that its job held out.
struct EvaluationData {
  DataConfig data;
  std::vector<std::int64_t> held_out;
};

/// The job's dataset that is meant, or the end of the list.
std::vector<DataSetConfig>::iterator choose_set(DataConfig& data, const std::string& named) {
  std::vector<DataSetConfig>& sets = data.sets;
  if (!named.empty()) {
    std::error_code absent;
    return std::find_if(sets.begin(), sets.end(),
                        [&](const DataSetConfig& set) { return std::filesystem::equivalent(named, set.path, absent); });
  }
  const auto holds_out = std::find_if(sets.begin(), sets.end(), [&](const DataSetConfig& set) {
    return !set.eval_episodes.empty() || !data.eval_episodes.empty();
  });
  return holds_out != sets.end() ? holds_out : sets.begin();
}

Result<EvaluationData> choose_data(const CheckpointPlace& place, const PolicySpec& spec,
                                   const std::string& named_data) {
  EvaluationData out;
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(place.folder));
  if (kind == CheckpointKind::troupe) {
    TROUPE_ASSIGN(const Manifest manifest, read_manifest(place.folder));
    TROUPE_ASSIGN(const JobConfig job, job_of(manifest, place.folder));
    out.data = job.data;
    const auto chosen = choose_set(out.data, named_data);
    if (chosen != out.data.sets.end()) {
      out.held_out = chosen->eval_episodes.empty() ? out.data.eval_episodes : chosen->eval_episodes;
      std::iter_swap(out.data.sets.begin(), chosen);
    }
    out.data.sets.resize(1);
  } else {
    if (named_data.empty()) {
      return Error{Errc::invalid_argument, fmt::format("{} names no dataset; name one with --data", place.folder)};
    }
    out.data.embodiment = spec.embodiment;
    out.data.window = spec.window;
    out.data.image = spec.image;
    out.data.sets.resize(1);
  }
  if (!named_data.empty()) out.data.sets.front().path = named_data;
  // Nothing is trained here: every episode may be looked at, and run_open_loop is told which.
  out.data.eval_episodes.clear();
  out.data.sets.front().eval_episodes.clear();
  return out;
}

}  // namespace

Result<CheckpointEvaluation> evaluate_checkpoint(const CheckpointPlace& place,
                                                 const CheckpointEvaluationOptions& options,
                                                 const std::string& folder) {
  TROUPE_ASSIGN(const PolicySpec spec, read_policy_spec(place.folder, options.policy));
  TROUPE_ASSIGN(EvaluationData chosen, choose_data(place, spec, options.data));
  TROUPE_ASSIGN(const auto dataset, Dataset::open(chosen.data, spec.model));
  chosen.data.embodiment = dataset->spec().embodiment;  // with its own strides
  chosen.data.window = dataset->spec().window;
  TROUPE_ASSIGN(const auto policy, load_policy(place.folder, options.policy));

  const OpenLoopOptions how{.episodes = options.episodes.empty() ? chosen.held_out : options.episodes,
                            .windows = options.windows,
                            .progress = options.progress};
  CheckpointEvaluation out{.result = {},
                           .subject = {.checkpoint = place.folder,
                                       .dataset = dataset->root(),
                                       .embodiment = policy->info().embodiment,
                                       .options = described(options.policy)}};
  out.subject.options["windows"] = options.windows;
  if (how.episodes.empty() && options.on_training_episodes) options.on_training_episodes();
  TROUPE_ASSIGN(out.result, run_open_loop(*policy, *dataset, chosen.data, how));
  TROUPE_TRY(write_file_durably(folder + "/eval.json", open_loop_json(out.result, out.subject)));
  TROUPE_TRY(draw_open_loop(folder + "/open_loop.png", out.result, out.subject));
  return out;
}

}  // namespace troupe::workers

#include "app/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/controller_link.h"
#include "app/disk_room.h"
#include "app/job_setup.h"
#include "base/file_io.h"
#include "base/hugging_face.h"
#include "data/language/tokenizer.h"
#include "env/registry/registry.h"
#include "model/io/weight_source.h"
#include "model/shard/network.h"
#include "model/wan/weights/load_features.h"
#include "placement/roles.h"
#include "workers/checkpoint/reader.h"
#include "workers/controller/run_lock.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/learner/device_support.h"
#include "workers/learner/engine_options.h"
#include "workers/learner/initial_state.h"
#include "workers/rollout/inline_simulators.h"

namespace troupe::app {

namespace {

namespace fs = std::filesystem;

void add(Preflight& found, const Result<void>& looked, const std::string& key) {
  if (!looked) found.findings.push_back({.error = looked.error().with(key)});
}

/// The folder of the checkpoint that a path, a run or a job's name means. Errors: those of find_checkpoint and
/// CheckpointReader::open.
Result<std::string> resolve_checkpoint(const std::string& path, const std::string& run_root) {
  TROUPE_ASSIGN(const CheckpointPlace place, find_checkpoint(path, run_root));
  TROUPE_TRY(CheckpointReader::open(place.folder));
  std::error_code code;
  const fs::path real = fs::canonical(place.folder, code);
  return code ? place.folder : real.string();
}

/// Relative paths and files of the Hugging Face cache become the path that is read, and recorded. A file keeps its
/// name: in the cache it is a link to one without an ending.
Result<void> find_files(std::string& path) {
  TROUPE_ASSIGN(path, find_model_files(path));
  std::error_code code;
  const fs::path found = fs::absolute(path, code);
  const fs::path real = fs::is_directory(found, code) ? fs::canonical(found, code)
                                                      : fs::canonical(found.parent_path(), code) / found.filename();
  if (!code) path = real.string();
  return {};
}

Result<void> look_at_weight_files(std::string& path) {
  TROUPE_TRY(find_files(path));
  TROUPE_TRY(WeightSource::open(path));
  return {};
}

Result<void> look_at_tokenizer(TextEncoderConfig& text) {
  TROUPE_TRY(find_files(text.tokenizer));
  TROUPE_TRY(make_tokenizer(text));
  return {};
}

/// A file or folder that a frozen part of the model is read from.
struct FrozenFile {
  const char* key;
  std::string& path;
  const std::string& recorded;
};

/// A run that goes on reads what it has read so far, and says so where the job names something else today.
void take_recorded(const FrozenFile& file, Preflight& found) {
  std::string named = file.path;
  file.path = file.recorded;
  for (std::string* path : {&named, &file.path}) {
    if (!path->empty()) static_cast<void>(find_files(*path));  // what is not there is a finding of its own
  }
  if (named == file.path) return;
  found.findings.push_back(
      {.error = {Errc::invalid_argument,
                 fmt::format("{}: the run goes on with '{}' as it began, not with '{}'", file.key, file.path, named)},
       .is_warning = true});
}

void look_at_weights(LoadedConfig& config, const ResumePoint& point, Preflight& found) {
  ModelInitConfig& init = config.job.model.init;
  TextEncoderConfig& text = config.job.model.text_encoder;
  if (point.run) {
    init.mode = point.model.init.mode;
    init.path = point.model.init.path;
  } else if (init.mode == "checkpoint") {
    auto folder = resolve_checkpoint(init.path, config.job.job.run_root);
    if (folder) init.path = std::move(*folder);
    if (!folder) found.findings.push_back({.error = folder.error().with("model.init.path")});
  } else if (init.mode != "random") {
    add(found, look_at_weight_files(init.path), "model.init.path");
  }
  const ModelInitConfig& before = point.model.init;
  const FrozenFile tokenizer{"model.text_encoder.tokenizer", text.tokenizer, point.model.text_encoder.tokenizer};
  for (const FrozenFile& file : {FrozenFile{"model.init.text_encoder", init.text_encoder, before.text_encoder},
                                 FrozenFile{"model.init.image_encoder", init.image_encoder, before.image_encoder},
                                 FrozenFile{"model.init.vae", init.vae, before.vae}, tokenizer}) {
    if (point.run) take_recorded(file, found);
    if (file.path.empty()) continue;
    add(found, file.key == tokenizer.key ? look_at_tokenizer(text) : look_at_weight_files(file.path), file.key);
  }
  config.record();
}

/// The evaluator plays on this machine, which need not have the simulator that env.spec describes.
void look_whether_evaluations_play(const JobConfig& job, const EnvSpec& env, Preflight& found) {
  if (!has_evaluator(job) || job.env.spec.empty()) return;
  const auto factory = make_env_factory(job.env, env);
  if (factory) return;
  found.findings.push_back(
      {.error = factory.error().with("evaluations are played on this machine, where they will fail"),
       .is_warning = true});
}

/// Workers that the user starts find one simulator at an address.
void look_at_bridge_address(const JobConfig& job, const Plan& plan, Preflight& found) {
  if (job.env.bridge.bind.empty()) return;
  std::map<std::int64_t, int> simulators;  // by node
  for (const PlannedActor& actor : plan.actors) simulators[actor.node] += actor.role == "env" ? 1 : 0;
  for (const auto& [node, count] : simulators) {
    if (count <= 1) continue;
    found.findings.push_back({.error = invalid_argument(fmt::format(
                                  "env.bridge.bind: {} simulators are planned on node {}, and each wants an address of "
                                  "its own; let cluster.component_placement give env one process a node",
                                  count, node))});
  }
}

/// What rollout workers cannot step themselves.
void look_at_inline_environments(const JobConfig& job, const EnvSpec& env, Preflight& found) {
  if (!steps_inline(job)) return;
  const auto factory = make_env_factory(job.env, env);
  if (!factory) return;  // another machine may have it
  if (const auto fits = check_inline(**factory); !fits) found.findings.push_back({.error = fits.error()});
}

void look_at_data(const LoadedConfig& config, const EnvSpec& env, const ResumePoint& point, Preflight& found) {
  if (lacks_quickstart_data(config)) {
    found.notes.push_back(
        fmt::format("{} is not there yet; `troupe run` generates this toy dataset", config.job.data.sets.at(0).path));
    return;
  }
  auto pipeline = open_pipeline(config.job, env);
  if (!pipeline) {
    found.findings.push_back({.error = pipeline.error()});
    return;
  }
  found.pipeline = std::move(*pipeline);
  look_whether_evaluations_play(config.job, env, found);
  look_at_inline_environments(config.job, env, found);
  if (point.checkpoint.empty()) return;
  if (const auto same = found.pipeline->check_fingerprint(point.checkpoint); !same)
    found.findings.push_back({.error = same.error()});
}

/// Whether the weights that the run begins with and those that stay frozen are this model's.
void look_whether_weights_fit(const JobConfig& job, const ResumePoint& point, Preflight& found) {
  if (point.checkpoint.empty())
    add(found, check_initial_state(job, state_units(found.pipeline->units())), "model.init.path");
  if (const auto rules = check_update_rules(state_units(found.pipeline->units()), job_update_rules(job)); !rules)
    found.findings.push_back({.error = rules.error()});
  if (trains_dreamzero(job)) add(found, check_frozen_files(job.model), "model.init");
}

/// "pid 123, step 34 of 300"; the pid alone where the controller does not answer.
std::string describe(const LiveRun& live) {
  std::string pid = fmt::format("pid {}", live.pid);
  auto link = ControllerLink::open(live.run);
  if (!link) return pid;
  const auto reply = (*link)->ask(StatusQuery{});
  if (!reply) return pid;
  const auto status = nlohmann::json::parse(reply->text, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return pid;
  return fmt::format("{}, step {} of {}", pid, status.value("step", std::int64_t{0}),
                     status.value("steps", std::int64_t{0}));
}

bool blocks(const Preflight& found) {
  return std::any_of(found.findings.begin(), found.findings.end(),
                     [](const Preflight::Finding& finding) { return !finding.is_warning; });
}

void say_notes(const Preflight& found) {
  for (const std::string& note : found.notes) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace

Result<void> no_live_run(const JobConfig& job) {
  const auto live = find_live_run(job.job.run_root, job.job.name);
  if (!live) return {};
  return Error{Errc::failed_precondition,
               fmt::format("job.name: {} is running ({}); see `troupe status {}`, or choose another job.name",
                           job.job.name, describe(*live), fs::relative(live->run.root()).string())};
}

Preflight preflight(LoadedConfig& config, const EnvSpec& env, const ResumePoint& point, const Plan* plan) {
  Preflight found;
  if (const auto none = no_live_run(config.job); !none) found.findings.push_back({.error = none.error()});
  look_at_weights(config, point, found);
  const bool has_weights = !blocks(found);
  // with policy.kind dreamzero the statistics are files of the checkpoint that the weights are in
  if (has_weights || !learns_dreamzero(config.job)) look_at_data(config, env, point, found);
  if (has_weights && found.pipeline) look_whether_weights_fit(config.job, point, found);
  if (plan) {
    look_at_bridge_address(config.job, *plan, found);
    for (RoomFinding& finding : look_at_room(config.job, point.run, *plan))
      found.findings.push_back(
          {.error = std::move(finding.error), .is_warning = finding.is_warning, .code = kInfeasible});
  }
  return found;
}

void look_at_devices(const JobConfig& job, const Plan& plan, Preflight& found) {
  if (const auto can = check_device_support(job, plan); !can)
    found.findings.push_back({.error = can.error(), .code = kInfeasible});
}

int refuse(const Preflight& found, const LoadedConfig& config) {
  int code = kOk;
  say_notes(found);
  for (const Preflight::Finding& finding : found.findings) {
    if (finding.is_warning) {
      fmt::print(stderr, "warning: {}\n", finding.error.message());
      continue;
    }
    explain(finding.error, config);
    if (code == kOk) code = finding.code;
  }
  return code;
}

void warn(const Preflight& found) {
  say_notes(found);
  for (const Preflight::Finding& finding : found.findings) fmt::print(stderr, "warning: {}\n", finding.error.message());
}

}  // namespace troupe::app

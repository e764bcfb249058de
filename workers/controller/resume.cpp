#include "workers/controller/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file_io.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/commit.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

namespace {

/// "data.sets[0].path" as "data.sets[].path".
std::string without_indices(const std::string& key) {
  std::string plain;
  for (std::size_t i = 0; i < key.size(); ++i) {
    plain += key[i];
    if (key[i] == '[') i = std::min(key.find(']', i), key.size()) - 1;
  }
  return plain;
}

bool may_change(const std::string& changed) {
  const std::string key = without_indices(changed);
  const auto& prefixes = mutable_on_resume();
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
    return key == prefix || key.starts_with(prefix + ".") || key.starts_with(prefix + "[");
  });
}

Result<JobConfig> recorded_job(const std::string& file) {
  TROUPE_ASSIGN(const std::string text, read_file(file));
  const LoadOutcome before = load_job_text(file, text, {});
  if (before.config) return before.config->job;
  return Error{Errc::data_loss,
               fmt::format("{}: {}", file, before.errors.empty() ? "unreadable" : before.errors.front())};
}

Result<void> check_unchanged(const JobConfig& before, const JobConfig& now, const std::string& file) {
  std::vector<std::string> refused;
  for (const std::string& key : differing_keys(before, now)) {
    const bool names_files = key.starts_with("model.init.") || key == "model.text_encoder.tokenizer";
    if (!names_files && !may_change(key)) refused.push_back(key);
  }
  if (refused.empty()) return {};
  return Error{Errc::invalid_argument,
               fmt::format("these keys differ from the run in {} and may not change on resume: {}; allowed: {}. Use "
                           "--resume never for a new run",
                           file, fmt::join(refused, ", "), fmt::join(mutable_on_resume(), ", "))};
}

/// Steps that a run which ended in order was trained to; none: it did not end, or not in order.
std::optional<std::int64_t> finished_at(const RunDirectory& run) {
  const auto db = StateDb::open_read_only(run.state_db());
  if (!db) return std::nullopt;
  const auto state = (*db)->job_state();
  const auto step = (*db)->committed_step();
  if (!state || !step || *state != "DONE") return std::nullopt;
  return *step;
}

/// What did not count before the checkpoint. One of an earlier version has no ledger.json.
Result<void> read_voids(ResumePoint& point) {
  auto ledger = read_checkpoint_ledger(point.checkpoint);
  if (!ledger && ledger.error().code() == Errc::not_found) return {};
  if (!ledger) return ledger.error();
  point.void_positions = std::move(ledger->void_positions);
  point.bad_positions = std::move(ledger->bad_positions);
  return {};
}

/// The run that goes on, from its newest checkpoint.
Result<ResumePoint> continued(const RunDirectory& run, const JobConfig& job) {
  TROUPE_ASSIGN(const JobConfig before, recorded_job(run.config()));
  TROUPE_TRY(check_unchanged(before, job, run.config()));
  const auto finished = finished_at(run);
  ResumePoint point{.run = run, .is_complete = finished && *finished >= job.training.steps, .model = before.model};
  const auto stepped = before.cluster.isolation.find("env");
  point.env_isolation = stepped == before.cluster.isolation.end() ? "process" : stepped->second;
  if (point.is_complete) return point;
  // Ranks compare what they read of rank files, and the run goes back to an older one where they find damage.
  const auto checkpoint = newest_valid(run.checkpoints(), CheckpointCheck::small_files);
  if (!checkpoint && checkpoint.error().code() != Errc::not_found) return checkpoint.error();
  if (checkpoint) {
    point.step = checkpoint->step;
    point.checkpoint = checkpoint->directory;
    TROUPE_TRY(read_voids(point));
  }
  return point;
}

}  // namespace

const std::vector<std::string>& mutable_on_resume() {
  static const std::vector<std::string> kKeys = {"training.steps",
                                                 "training.step_timeout_s",
                                                 "cluster",
                                                 "metrics",
                                                 "checkpoint",
                                                 "ema",
                                                 "optimizer.moments",
                                                 "eval",
                                                 "lr_scheduler.total_steps",
                                                 "job.run_root",
                                                 "activation_checkpoint",
                                                 "offload",
                                                 "optimizer.lazy",
                                                 "parallelism.param_slots",
                                                 "parallelism.grad_slots",
                                                 "data.prefetch_batches",
                                                 "data.decode_deadline_s",
                                                 "data.decoder",
                                                 "data.index",
                                                 "data.bad_sample",
                                                 "data.max_bad_fraction",
                                                 "data.sets[].path",
                                                 "env.step_timeout_s",
                                                 "env.spec",
                                                 "env.bridge",
                                                 "training.micro_batch_size"};
  return kKeys;
}

Result<ResumePoint> resolve_resume(const LoadedConfig& config, const std::string& resume) {
  const JobConfig& job = config.job;
  if (resume == "never") return ResumePoint{};
  if (!resume.empty() && resume != "auto") {
    const auto named = find_run(resume, job.job.run_root);
    if (!named) return named.error().with("--resume (auto, never or a run)");
    return continued(*named, job);
  }
  const auto runs = runs_of(job.job.run_root, job.job.name);
  if (runs.empty()) return ResumePoint{};
  const RunDirectory& newest = runs.front();
  if (resume == "auto") return continued(newest, job);
  const auto checkpoint = newest_valid(newest.checkpoints(), CheckpointCheck::small_files);
  if (finished_at(newest) || !checkpoint) return ResumePoint{};
  return Error{Errc::failed_precondition, fmt::format("{} is unfinished and has checkpoints up to step {}; add "
                                                      "--resume auto to go on, or --resume never for a new run",
                                                      newest.root(), checkpoint->step)};
}

}  // namespace troupe::workers

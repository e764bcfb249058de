// `troupe verify` and `troupe export`: read what a run left on disk.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/export.h"
#include "workers/checkpoint/reader.h"
#include "workers/controller/run_audit.h"
#include "workers/controller/run_lock.h"
#include "workers/inference/agent/agent_export.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/inference/policy/gear_export.h"
#include "workers/report/card/card_facts.h"

namespace troupe::app {

namespace {

/// Digests of every checkpoint on disk. Returns how many are bad.
int verify_checkpoints(const RunDirectory& run) {
  const auto checkpoints = list_checkpoints(run.checkpoints());
  int bad = 0;
  for (const CheckpointEntry& entry : checkpoints) {
    const auto reader = CheckpointReader::open(entry.directory);
    const Result<void> result = reader ? (*reader)->verify_digests() : Result<void>(reader.error());
    if (!result && !std::filesystem::exists(entry.directory)) continue;  // pruned meanwhile by a job that runs
    fmt::print("  checkpoint step {:<8} {} ranks  {}\n", entry.step, entry.manifest.world,
               result ? "digests ok" : result.error().message());
    if (!result) ++bad;
  }
  if (checkpoints.empty()) fmt::print("  no checkpoints\n");
  for (const std::string& path : invalid_checkpoints(run.checkpoints())) {
    fmt::print("  {}: not a valid checkpoint\n", path);
    ++bad;
  }
  return bad;
}

void list(const char* what, const std::vector<LedgerFinding>& findings) {
  for (const LedgerFinding& f : findings)
    fmt::print("  {} position {} (step {}): {}\n", what, f.position, f.step, f.detail);
}

/// Transitions of off-policy training, and what else the ledger keeps running totals of.
void report_counters(const CounterVerdict& verdict) {
  if (verdict.records == 0) return;
  const auto total = [&](const char* name) { return verdict.totals.count(name) != 0 ? verdict.totals.at(name) : 0; };
  if (verdict.totals.count("produced") != 0) {
    fmt::print("  transitions: produced {} = resident {} + evicted {} + lost {}; {} records out of balance\n",
               total("produced"), total("resident"), total("evicted"), total("lost"), verdict.unbalanced);
  }
  std::string text;
  for (const auto& [name, value] : verdict.totals)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  fmt::print("  counters: {}\n", text);
  for (const CounterFinding& f : verdict.unbalanced_list) fmt::print("  unbalanced step {}: {}\n", f.step, f.detail);
  for (const CounterFinding& f : verdict.backwards_list) fmt::print("  backwards step {}: {}\n", f.step, f.detail);
}

}  // namespace

int verify_command(const VerifyOptions& options) {
  const auto run = find_run(options.run, options.run_root);
  if (!run) return complain(run.error(), kUsage);
  const auto pid = controller_of(*run);
  fmt::print("verify {}{}\n", run->root(),
             pid ? fmt::format(": running (pid {}); what is committed is verified", *pid) : "");
  const int bad = verify_checkpoints(*run);
  const auto audited = audit_run(*run);
  if (!audited)
    return complain(audited.error(), audited.error().code() == Errc::failed_precondition ? kUsage : kDataProblem);
  const LedgerVerdict* const verdict = &audited->ledger;
  fmt::print("  committed step {}: {} positions  trained {}  void {}  lost {}  doubled {}\n", verdict->steps,
             verdict->expected, verdict->trained, verdict->voided, verdict->lost, verdict->doubled);
  if (verdict->superseded > 0)
    fmt::print(
        "  {} positions stand in records of steps that were rolled back or never committed; those do not count\n",
        verdict->superseded);
  report_counters(verdict->counters);
  list("void", verdict->void_list);
  list("lost", verdict->lost_list);
  list("doubled", verdict->doubled_list);
  list("misplaced", verdict->misplaced_list);
  if (audited->collects_experience) {
    if (verdict->changed > 0) fmt::print("  {} trajectories were collected anew after a rollback\n", verdict->changed);
  } else {
    list("changed", verdict->changed_list);
  }
  const bool ok = bad == 0 && verdict->ok();
  fmt::print("{}\n", ok ? "OK" : "PROBLEMS FOUND");
  return ok ? kOk : kDataProblem;
}

namespace {

/// Every tensor of a policy trained by reinforcement learning, and what acting with it takes.
Result<ExportSummary> export_agent(const std::string& checkpoint, const ExportOptions& options,
                                   const ExportFormat& format) {
  if (options.format != "safetensors" || options.merge_lora) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} is not for {}, which was trained by reinforcement learning and has no adapters; use "
                             "--format safetensors",
                             options.merge_lora ? "--merge-lora" : "--format " + options.format, checkpoint)};
  }
  TROUPE_ASSIGN(const LoadedAgent loaded, load_agent(checkpoint, options.weights));
  TROUPE_ASSIGN(ExportSummary summary, export_safetensors(checkpoint, options.out, format));
  TROUPE_TRY(write_agent_description(loaded, options.out));
  return summary;
}

/// Writes in the format that was asked for.
Result<ExportSummary> export_as(const std::string& checkpoint, const ExportOptions& options, const Progress& progress) {
  if (options.dtype != "fp32" && options.dtype != "bf16") {
    return Error{Errc::invalid_argument, fmt::format("--dtype is '{}'; wanted fp32 or bf16", options.dtype)};
  }
  ExportFormat format{.max_shard_bytes = options.shard_bytes,
                      .bf16 = options.dtype == "bf16",
                      .adapters = options.merge_lora ? AdapterForm::merged : AdapterForm::separate,
                      .weights = options.weights,
                      .progress = progress};
  if (holds_agent(checkpoint)) return export_agent(checkpoint, options, format);
  if (options.format == "gear") return export_gear(checkpoint, options.out, format);
  if (options.format == "safetensors") return export_safetensors(checkpoint, options.out, format);
  if (options.format != "lora") {
    return Error{Errc::invalid_argument,
                 fmt::format("--format is '{}'; wanted safetensors, gear or lora", options.format)};
  }
  if (options.merge_lora)
    return Error{Errc::invalid_argument,
                 "--format lora writes adapters by themselves; --merge-lora has no meaning there"};
  TROUPE_ASSIGN(const auto trained, CheckpointTensors::open(checkpoint, AdapterForm::trainable));
  if (!trained->has_adapters()) {
    return Error{
        Errc::failed_precondition,
        fmt::format("{} was trained without adapters; export it with --format safetensors or gear", checkpoint)};
  }
  // As the reference saves adapters alone (docs/checkpoints.md#adapters).
  format.adapters = AdapterForm::trainable;
  format.prefix = "action_head.model.base_model.model.";
  return export_safetensors(checkpoint, options.out, format);
}

/// README.md, unless there is one: it may be somebody's own, which is said, since it may also be of other weights.
Result<void> write_card(const CheckpointPlace& place, const ExportOptions& options, const ExportSummary& summary) {
  const std::string file = options.out + "/README.md";
  if (std::filesystem::exists(file)) {
    fmt::print(stderr, "note: {} was there and is kept; remove it and the weights, and export again, for their card\n",
               file);
    return {};
  }
  TROUPE_ASSIGN(const ModelCard card, card_of(place.folder, place.run, options.format, options.out, summary));
  return write_file_durably(file, model_card_text(card));
}

}  // namespace

int export_command(const ExportOptions& options) {
  const auto place = find_checkpoint(options.source, options.run_root);
  if (!place) return complain(place.error(), kUsage);
  const auto summary = [&] {
    CommandProgress line("export");
    return export_as(place->folder, options, [&](std::int64_t done, std::int64_t of) {
      constexpr int kMib = 20;
      line.show("MiB", done >> kMib, of >> kMib);
    });
  }();
  if (!summary) return complain(suggest_older(summary.error(), place->folder));
  if (const auto written = write_card(*place, options, *summary); !written) return complain(written.error());
  fmt::print("exported {} tensors, {} parameters, {} bytes from {} to {}\n", summary->tensors, summary->parameters,
             summary->bytes, place->folder, options.out);
  return kOk;
}

}  // namespace troupe::app

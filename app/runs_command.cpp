// `troupe runs`: what lies in the folder of run directories, and what of it may go.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/commands.h"
#include "app/exit_code.h"
#include "placement/format.h"
#include "workers/controller/run_listing.h"
#include "workers/controller/run_lock.h"
#include "workers/report/text_report.h"

namespace troupe::app {

namespace {

void print_runs(const std::vector<ListedRun>& runs) {
  std::size_t widest = 4;
  for (const ListedRun& r : runs) widest = std::max(widest, r.name.size() + 1 + r.run.id().size());
  fmt::print("{:<{}}  {:<10}  {:>8}  {:>18}  {:>10}  {:>10}\n", "run", widest, "state", "step", "newest", "age",
             "size");
  for (const ListedRun& r : runs) {
    fmt::print("{:<{}}  {:<10}  {:>8}  {:>18}  {:>10}  {:>10}{}\n", r.name + "/" + r.run.id(), widest, r.state, r.step,
               r.value ? fmt::format("{} {:.4g}", r.measure, *r.value) : "-", duration_text(r.age_seconds),
               format_bytes(r.bytes), r.is_latest ? "  latest" : "");
  }
}

/// Takes out the runs that are not of the name asked for. Errors: not_found, with the names that there are.
Result<void> keep_named(std::vector<ListedRun>& runs, const RunsOptions& options) {
  if (options.name.empty()) return {};
  std::erase_if(runs, [&](const ListedRun& r) { return r.name != options.name; });
  if (runs.empty()) TROUPE_TRY(find_run(options.name, options.run_root));
  return {};
}

/// Each is looked at again: it may have been started meanwhile.
int remove(const std::vector<ListedRun>& runs) {
  for (const ListedRun& r : runs) {
    const auto lock = lock_run(r.run);
    if (!lock) return complain(lock.error());
    std::error_code code;
    std::filesystem::remove_all(r.run.root(), code);
    if (code) return complain({Errc::unavailable, fmt::format("{}: {}", r.run.root(), code.message())});
    fmt::print("removed {}\n", r.run.root());
  }
  return kOk;
}

}  // namespace

int runs_command(const RunsOptions& options) {
  std::error_code code;
  if (!std::filesystem::is_directory(options.run_root, code)) {
    return complain({Errc::not_found, fmt::format("{}: no such folder; --run-root names the folder of run directories",
                                                  options.run_root)});
  }
  std::vector<ListedRun> runs = list_runs(options.run_root);
  if (const auto kept = keep_named(runs, options); !kept) return complain(kept.error());
  if (!options.prune) {
    print_runs(runs);
    return kOk;
  }
  const std::vector<ListedRun> removable = removable_runs(runs, options.keep);
  if (options.yes) return remove(removable);
  print_runs(removable);
  std::int64_t bytes = 0;
  for (const ListedRun& r : removable) bytes += r.bytes;
  fmt::print("{} runs, {}: `troupe runs --prune --yes` removes them\n", removable.size(), format_bytes(bytes));
  return kOk;
}

}  // namespace troupe::app

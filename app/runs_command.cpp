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

/// It is looked at again: it may have been started meanwhile.
Result<void> remove(const RunDirectory& run) {
  TROUPE_ASSIGN(const FileLock lock, lock_to_remove(run));
  std::error_code code;
  std::filesystem::remove_all(run.root(), code);
  if (code) return Error{Errc::unavailable, fmt::format("{}: {}", run.root(), code.message())};
  fmt::print("removed {}\n", run.root());
  return {};
}

/// All that can be; the code of the first that cannot.
int remove(const std::vector<ListedRun>& runs) {
  int code = kOk;
  for (const ListedRun& r : runs) {
    const auto removed = remove(r.run);
    if (removed) continue;
    const int failed = complain(removed.error());
    if (code == kOk) code = failed;
  }
  return code;
}

/// The command that removes what this one lists.
std::string removing_command(const RunsOptions& options) {
  const RunsOptions defaults;
  std::string command = "troupe runs";
  if (!options.name.empty()) command += " " + options.name;
  if (options.run_root != defaults.run_root) command += " --run-root " + options.run_root;
  command += " --prune";
  if (options.keep != defaults.keep) command += fmt::format(" --keep {}", options.keep);
  return command + " --yes";
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
  if (removable.empty()) {
    fmt::print("nothing to remove\n");
    return kOk;
  }
  print_runs(removable);
  std::int64_t bytes = 0;
  for (const ListedRun& r : removable) bytes += r.bytes;
  fmt::print("{} run{}, {}: `{}` removes {}\n", removable.size(), removable.size() == 1 ? "" : "s", format_bytes(bytes),
             removing_command(options), removable.size() == 1 ? "it" : "them");
  return kOk;
}

}  // namespace troupe::app

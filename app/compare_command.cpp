// `troupe compare RUN...`: runs side by side, those that differ by their seed alone as one group.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "app/commands.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "workers/report/compare/compare_page.h"
#include "workers/report/compare/comparison_tables.h"

namespace troupe::app {

namespace {

Result<std::vector<RunGroup>> read_groups(const CompareOptions& options) {
  std::vector<ComparedRun> runs;
  std::set<std::string> folders;
  for (const std::string& name : options.runs) {
    TROUPE_ASSIGN(const RunDirectory directory, find_run(name, options.run_root));
    if (!folders.insert(directory.root()).second)
      return Error{Errc::invalid_argument, fmt::format("{}: is the run {} again", name, directory.root())};
    TROUPE_ASSIGN(ComparedRun run, read_compared_run(directory));
    runs.push_back(std::move(run));
  }
  if (runs.size() < 2)
    return Error{Errc::invalid_argument, "one run compares with nothing; name another, as `troupe runs` lists them"};
  return group_runs(std::move(runs));
}

}  // namespace

int compare_command(const CompareOptions& options) {
  const auto groups = read_groups(options);
  if (!groups) return complain(groups.error());
  const std::string page = options.out.empty() ? options.run_root + "/compare.html" : options.out;
  const auto written = write_file_durably(page, compare_page("Comparison of runs", *groups));
  if (!written) return complain(written.error());
  fmt::print("{}", markdown_table(group_table(*groups)));
  if (const std::string tests = markdown_table(paired_table(*groups)); !tests.empty())
    fmt::print("\neach group minus {}:\n\n{}", groups->front().label, tests);
  if (const std::string settings = markdown_table(difference_table(*groups)); !settings.empty())
    fmt::print("\nsettings that differ:\n\n{}", settings);
  fmt::print("\nwritten: {}\n", page);
  return kOk;
}

}  // namespace troupe::app

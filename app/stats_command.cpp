// `troupe stats DATA`: statistics and health of a dataset, as a table, JSON, HTML, and as metadata files.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/confined.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "configs/embodiment_file.h"
#include "data/health/health_check.h"
#include "data/health/html.h"
#include "data/health/metadata_files.h"
#include "data/health/report_json.h"
#include "data/health/report_text.h"
#include "data/lerobot/dataset_location.h"

namespace troupe::app {
namespace {

Result<HealthOptions> health_options(const StatsOptions& options) {
  HealthOptions out;
  out.data = options.data;
  if (options.verify != "index" && options.verify != "full")
    return Error{Errc::invalid_argument, fmt::format("--verify {}; wanted index or full", options.verify)};
  if (options.horizon < 1 || options.horizon > 4096)
    return Error{Errc::invalid_argument, fmt::format("--horizon {}; wanted 1 to 4096 steps", options.horizon)};
  if (options.workers < 0)
    return Error{Errc::invalid_argument, fmt::format("--workers {}; wanted 0 or more", options.workers)};
  if (!options.out.empty() && !options.write_metadata)
    return Error{Errc::invalid_argument, "--out says where --write-metadata writes; give that option too"};
  if (!options.embodiment.empty()) {
    TROUPE_ASSIGN(out.embodiment, load_embodiment(options.embodiment));
  }
  out.relative_keys = options.relative_keys;
  out.horizon = options.horizon;
  out.decode = options.verify == "full";
  out.pictures = !options.html.empty();
  out.threads = options.workers;
  return out;
}

/// Writes a report and says so.
Result<void> write_report(const std::string& path, const std::string& text, const char* what, std::FILE* talk) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code code;
  if (!folder.empty() && !std::filesystem::is_directory(folder, code))
    return Error{Errc::invalid_argument, fmt::format("--{} {}: there is no folder {}", what, path, folder.string())};
  TROUPE_TRY(write_file_durably(path, text));
  fmt::print(talk, "  wrote      {}\n", path);
  return {};
}

Result<void> write_metadata_files(const StatsOptions& options, const HealthReport& report,
                                  const std::optional<EmbodimentConfig>& embodiment, std::FILE* talk) {
  TROUPE_ASSIGN(const auto files, metadata_files(report, embodiment));
  const std::string folder = options.out.empty() ? report.root + "/meta" : options.out;
  TROUPE_ASSIGN(const auto outcomes, write_metadata(folder, files, "--out DIR"));
  for (const MetadataOutcome& o : outcomes) {
    const bool kept = o.kind == MetadataOutcome::Kind::kept;
    fmt::print(
        talk, "  {:<9}  {}{}\n",
        kept                                         ? "kept"
        : o.kind == MetadataOutcome::Kind::unchanged ? "unchanged"
                                                     : "wrote",
        o.path,
        kept ? ", which differs and was not written by troupe; delete it first, or --out DIR writes elsewhere" : "");
  }
  return {};
}

Result<int> stats(const StatsOptions& options) {
  TROUPE_ASSIGN(const HealthOptions asked, health_options(options));
  const auto examine = [&] {
    CommandProgress line("stats");
    HealthOptions watched = asked;
    watched.progress = line.of_parts();
    return check_health(watched);
  };
  TROUPE_ASSIGN(const HealthReport report, examine());
  // With --json - only the report goes to stdout.
  std::FILE* talk = options.json == "-" ? stderr : stdout;
  fmt::print(talk, "{}", stats_text(report));
  if (options.json == "-") fmt::print("{}", report_json(report));
  if (!options.json.empty() && options.json != "-")
    TROUPE_TRY(write_report(options.json, report_json(report), "json", talk));
  if (!options.html.empty()) TROUPE_TRY(write_report(options.html, report_html(report), "html", talk));
  const bool sound = report.count(FindingLevel::problem) == 0;
  if (options.write_metadata && (sound || !report.columns.empty()))
    TROUPE_TRY(write_metadata_files(options, report, asked.embodiment, talk));
  std::fflush(talk);
  return static_cast<int>(sound ? kOk : kDataProblem);
}

}  // namespace

int stats_command(const StatsOptions& options) {
  SandboxRules rules;
  allow_dataset(rules, options.data);
  // reports, in folders that exist; the dataset's own metadata only where that is asked for
  for (const std::string& file : {options.html, options.json}) {
    if (file.empty() || file == "-") continue;
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    rules.writable.push_back(folder.empty() ? "." : folder.string());
  }
  if (options.write_metadata) {
    const auto found = find_dataset(options.data);
    const std::string folder = !options.out.empty() ? options.out : found ? *found + "/meta" : "";
    if (!options.out.empty()) (void)make_folders(folder);  // who writes there says why it cannot
    rules.writable.push_back(folder);
  }
  if (!options.embodiment.empty()) rules.readable.push_back(options.embodiment);
  return run_confined(options.data, rules, [&] {
    const auto result = stats(options);
    return result ? *result : complain(result.error());
  });
}

}  // namespace troupe::app

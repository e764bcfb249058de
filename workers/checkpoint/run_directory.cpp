#include "workers/checkpoint/run_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "configs/suggest.h"

namespace troupe::workers {

namespace fs = std::filesystem;

namespace {

Result<void> check_for_folder(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status) || fs::is_directory(status)) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{}: a file is in the way of this folder; move it or change job.run_root", path)};
}

}  // namespace

Result<RunDirectory> RunDirectory::create(const std::string& run_root, const std::string& name, const std::string& id) {
  const RunDirectory run(fs::absolute(fs::path(run_root) / name / id).lexically_normal().string());
  TROUPE_TRY(check_for_folder(run.root()));
  TROUPE_TRY(make_folders_durably(run.root(), run_root));
  for (const char* sub : {"checkpoints", "ledger", "logs", "eval", "tb"}) {
    TROUPE_TRY(check_for_folder(run.path(sub)));
    TROUPE_TRY(make_folders(run.path(sub)));
  }
  TROUPE_TRY(sync_directory(run.root()));
  return run;
}

Result<void> RunDirectory::make_latest(const std::string& run_root) const {
  std::error_code error;
  const fs::path link = fs::path(run_root) / "latest";
  const fs::path temporary = fs::path(run_root) / fmt::format(".latest-{}", id());
  fs::remove(temporary, error);
  fs::create_directory_symlink(fs::relative(root_, run_root), temporary, error);
  if (error) return file_error(temporary.string(), "cannot create link", error.value());
  return commit_file(temporary.string(), link.string());
}

std::string RunDirectory::id() const { return fs::path(root_).filename().string(); }

std::string RunDirectory::log_of(const std::string& actor) const {
  std::string file = actor;
  std::replace(file.begin(), file.end(), '/', '-');
  return logs() + "/" + file + ".log";
}

std::vector<RunDirectory> runs_of(const std::string& run_root, const std::string& name) {
  std::vector<RunDirectory> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(run_root) / name, error)) {
    if (entry.is_directory(error) && fs::exists(entry.path() / "config.resolved.yaml", error)) {
      runs.emplace_back(fs::absolute(entry.path()).lexically_normal().string());
    }
  }
  std::sort(runs.begin(), runs.end(), [](const RunDirectory& a, const RunDirectory& b) { return b.id() < a.id(); });
  return runs;
}

namespace {

/// What a user may have meant: the names of the runs in `run_root`, one a line.
std::string runs_there(const std::string& wanted, const std::string& run_root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_root, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_symlink(error) && !runs_of(run_root, name).empty()) names.push_back(name);
  }
  if (names.empty()) return fmt::format("there are no runs in {}; --run-root names another folder", run_root);
  std::sort(names.begin(), names.end());
  return configs::list_nearest_first(fmt::format("runs in {}", run_root), wanted, std::move(names));
}

}  // namespace

Result<RunDirectory> find_run(const std::string& run, const std::string& run_root) {
  std::error_code error;
  const std::string wanted = run.empty() ? (fs::path(run_root) / "latest").string() : run;
  const fs::path resolved = fs::canonical(wanted, error);
  if (!error && fs::exists(resolved / "config.resolved.yaml", error)) return RunDirectory(resolved.string());
  if (const fs::path named = wanted; named.has_parent_path() && named.is_relative()) {  // NAME/ID, as tables print it
    std::error_code none;
    const fs::path below = fs::canonical(fs::path(run_root) / named, none);
    if (!none && fs::exists(below / "config.resolved.yaml", none)) return RunDirectory(below.string());
  }
  auto runs = runs_of(run_root, wanted);
  if (runs.empty() && !error) runs = runs_of(resolved.parent_path().string(), resolved.filename().string());
  if (!runs.empty()) return runs.front();
  return Error{Errc::not_found,
               fmt::format("{}: no run there (no config.resolved.yaml), and no run of that name under {}\n      {}",
                           wanted, run_root, runs_there(wanted, run_root))};
}

}  // namespace troupe::workers

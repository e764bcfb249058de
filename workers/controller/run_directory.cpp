#include "workers/controller/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe::workers {

namespace fs = std::filesystem;

namespace {

Error file_error(const std::string& path, const std::string& what, int code) {
  const Errc errc = code == ENOSPC || code == EDQUOT ? Errc::resource_exhausted
                    : code == ENOENT                 ? Errc::not_found
                                                     : Errc::failed_precondition;
  return {errc, fmt::format("{}: {}: {}", path, what, std::strerror(code))};
}

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: a file is in the way of this folder; move it or change job.run_root", path)};
  }
  fs::create_directories(path, error);
  if (error) return file_error(path, "cannot create folder", error.value());
  return {};
}

}  // namespace

Result<RunDirectory> RunDirectory::create(const std::string& run_root, const std::string& name, const std::string& id) {
  const RunDirectory run(fs::absolute(fs::path(run_root) / name / id).lexically_normal().string());
  for (const char* sub : {"", "checkpoints", "ledger", "logs", "eval", "tb"}) TROUPE_TRY(make_folder(run.path(sub)));
  return run;
}

Result<void> RunDirectory::make_latest(const std::string& run_root) const {
  std::error_code error;
  const fs::path link = fs::path(run_root) / "latest";
  const fs::path temporary = fs::path(run_root) / fmt::format(".latest-{}", id());
  fs::remove(temporary, error);
  fs::create_directory_symlink(fs::relative(root_, run_root), temporary, error);
  if (error) return file_error(temporary.string(), "cannot create link", error.value());
  fs::rename(temporary, link, error);
  if (error) return file_error(link.string(), "cannot replace link", error.value());
  return {};
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

Result<RunDirectory> find_run(const std::string& run, const std::string& run_root) {
  std::error_code error;
  const std::string wanted = run.empty() ? (fs::path(run_root) / "latest").string() : run;
  const fs::path resolved = fs::canonical(wanted, error);
  if (!error && fs::exists(resolved / "config.resolved.yaml", error)) return RunDirectory(resolved.string());
  const auto runs = runs_of(run_root, wanted);
  if (!runs.empty()) return runs.front();
  return Error{
      Errc::not_found,
      fmt::format("{}: no run there (no config.resolved.yaml), and no run of that name under {}", wanted, run_root)};
}

Result<std::string> runtime_directory(const std::string& run_id) {
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  std::string base = xdg && *xdg ? fmt::format("{}/troupe", xdg) : fmt::format("/tmp/troupe-{}", ::getuid());
  for (const std::string& folder : {base, base + "/" + run_id}) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return file_error(folder, "cannot create runtime folder", errno);
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0) return file_error(folder, "cannot inspect", errno);
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 077) != 0) {
      return Error{
          Errc::failed_precondition,
          fmt::format("{}: must be a folder of this user with mode 0700; remove it or set XDG_RUNTIME_DIR", folder)};
    }
  }
  return base + "/" + run_id;
}

Result<void> write_file(const std::string& path, const std::string& text, int mode) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return file_error(temporary, "cannot create", errno);
  std::size_t done = 0;
  int failure = 0;
  while (done < text.size() && failure == 0) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) failure = errno;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  if (failure == 0 && ::fsync(fd) != 0) failure = errno;
  ::close(fd);
  if (failure == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
  if (failure != 0) {
    ::unlink(temporary.c_str());
    return file_error(path, "cannot write", failure);
  }
  return {};
}

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return Error{Errc::invalid_argument, path + ": is a folder, wanted a file"};
  std::ifstream in(path, std::ios::binary);
  if (!in) return file_error(path, "cannot read", errno == 0 ? ENOENT : errno);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace troupe::workers

#include "data/convert/output_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file_io.h"
#include "data/convert/journal.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// Whether the folder is absent, or holds nothing but the folder of the lock.
bool is_free(const std::string& out, const std::string& lock) {
  std::error_code failed;
  if (!fs::exists(out, failed)) return !failed;
  if (!fs::is_directory(out, failed)) return false;
  for (fs::recursive_directory_iterator it(out, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string path = it->path().string();
    if (path != lock && !lock.starts_with(path + "/")) return false;
  }
  return !failed;
}

Error holds_something(const std::string& out) {
  return {Errc::failed_precondition,
          fmt::format("{} exists and is not empty; name another folder, or --resume to go on with a conversion that "
                      "was stopped",
                      out)};
}

}  // namespace

Result<OutputLock> OutputLock::take(const std::string& out, bool resume) {
  const std::string folder = out + "/" + kConvertFolder, path = folder + "/lock";
  std::error_code failed;
  // a folder that is none of ours stays untouched; where somebody converts, the lock tells who
  if (!resume && !fs::exists(path, failed) && !is_free(out, path)) return holds_something(out);
  std::vector<std::string> made;
  for (fs::path above = folder; !above.empty() && !fs::exists(above, failed); above = above.parent_path())
    made.push_back(above.string());
  TROUPE_TRY(make_folders(folder));
  auto lock = base::FileLock::acquire(path);
  if (!lock) return lock.error().with(fmt::format("{} is being written by another conversion", out));
  OutputLock owned(std::move(*lock), std::move(made));
  if (!resume && !is_free(out, path)) return holds_something(out);
  return owned;
}

OutputLock::OutputLock(base::FileLock lock, std::vector<std::string> made)
    : lock_(std::move(lock)), folders_(std::move(made)) {}

OutputLock::~OutputLock() {
  if (!lock_) return;
  std::error_code ignored;  // a file that stays locks nobody out, and a folder that is not empty is the result
  [[maybe_unused]] const auto removed = lock_->remove();
  for (const std::string& folder : folders_) fs::remove(folder, ignored);
}

}  // namespace troupe::data

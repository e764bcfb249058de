#include "data/convert/finished_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/durable_file.h"
#include "base/fault.h"

namespace troupe::data {

std::string part_name(const std::string& path) { return path + ".part"; }

Result<void> make_parent(const std::string& path) {
  std::error_code failed;
  const auto parent = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(parent, failed);
  if (failed) return file_error(parent.string(), "cannot be made", failed.value());
  return {};
}

Result<void> sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot be opened", errno);
  const int rc = ::fsync(fd), cause = errno;
  ::close(fd);
  if (rc != 0) return file_error(path, "cannot be synced", cause);
  return {};
}

Result<void> finish_file(const std::string& path) {
  TROUPE_TRY(sync_file(part_name(path)));
  TROUPE_TRY(fault_point("convert.rename", path));
  return commit_file(part_name(path), path);
}

Result<void> write_finished(const std::string& path, std::string_view bytes) {
  TROUPE_TRY(fault_point("convert.metadata", path));
  TROUPE_TRY(make_parent(path));
  TROUPE_TRY(write_file_synced(part_name(path), bytes));
  return finish_file(path);
}

}  // namespace troupe::data

#include "data/convert/finished_file.h"

#include <filesystem>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"

namespace troupe::data {

std::string part_name(const std::string& path) { return path + ".part"; }

Result<void> make_parent(const std::string& path) {
  return make_folders(std::filesystem::path(path).parent_path().string());
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

#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>

namespace troupe::base {

Result<TemporaryFolder> TemporaryFolder::make(const std::string& name) {
  std::error_code code;
  std::string path = (std::filesystem::temp_directory_path(code) / (name + "-XXXXXX")).string();
  if (code || ::mkdtemp(path.data()) == nullptr)
    return Error{Errc::failed_precondition, fmt::format("{}: no folder can be made (TMPDIR names another)", path)};
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::base

#include "app/eval_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file_io.h"

namespace troupe::app {

namespace fs = std::filesystem;

Result<std::string> evaluation_folder(const CheckpointPlace& place, const std::string& out) {
  std::string folder = out;
  if (folder.empty() && place.run.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} lies in no run directory; name a folder with --out", place.folder)};
  }
  std::error_code code;
  if (folder.empty()) {
    const fs::path real = fs::canonical(place.folder, code);  // of a link such as checkpoints/latest
    folder = place.run + "/eval/" + (code ? fs::path(place.folder) : real).filename().string();
  }
  TROUPE_TRY(make_folders(folder));
  return folder;
}

}  // namespace troupe::app

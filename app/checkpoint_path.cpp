#include "app/checkpoint_path.h"

#include <filesystem>

#include "workers/checkpoint/commit.h"
#include "workers/controller/run_directory.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::app {

namespace fs = std::filesystem;

Result<CheckpointPlace> find_checkpoint(const std::string& source, const std::string& run_root) {
  if (checkpoint_kind(source)) {
    CheckpointPlace place{.folder = source, .run = {}};
    while (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
    std::error_code code;
    const fs::path real = fs::canonical(source, code);
    if (!code && real.parent_path().filename() == "checkpoints") place.run = real.parent_path().parent_path().string();
    return place;
  }
  const auto run = find_run(source, run_root);
  if (!run) return Error{run.error().code(), run.error().message() + "; nor is it a DreamZero folder (no config.json)"};
  TROUPE_ASSIGN(const CheckpointEntry newest, newest_valid(run->checkpoints()));
  return CheckpointPlace{.folder = newest.directory, .run = run->root()};
}

}  // namespace troupe::app

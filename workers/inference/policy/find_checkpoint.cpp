#include "workers/inference/policy/find_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file_io.h"
#include "base/hugging_face.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace fs = std::filesystem;

namespace {

/// RUN/checkpoints/LINK of a run that is named as in find_run. None for another form, or without such a run.
std::optional<CheckpointPlace> find_link(const std::string& source, const std::string& run_root) {
  const fs::path path = source, folder = path.parent_path();
  if (folder.filename() != "checkpoints") return std::nullopt;
  const auto run = find_run(folder.parent_path().string(), run_root);
  if (!run) return std::nullopt;
  CheckpointPlace place{.folder = run->checkpoints() + "/" + path.filename().string(), .run = run->root()};
  if (!checkpoint_kind(place.folder)) return std::nullopt;
  return place;
}

}  // namespace

Result<CheckpointPlace> find_checkpoint(const std::string& source, const std::string& run_root) {
  const auto files = find_model_files(source);
  const bool is_cached = files && *files != source;
  if (is_cached && checkpoint_kind(*files)) return CheckpointPlace{.folder = *files, .run = {}};
  if (checkpoint_kind(source)) {
    CheckpointPlace place{.folder = source, .run = {}};
    while (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
    std::error_code code;
    const fs::path real = fs::canonical(source, code);
    if (!code && real.parent_path().filename() == "checkpoints") place.run = real.parent_path().parent_path().string();
    return place;
  }
  if (auto place = find_link(source, run_root)) return *place;
  const auto run = find_run(source, run_root);
  if (!run) {
    std::string why = run.error().message();  // its first line says what is missing, the others what is there
    why.insert(std::min(why.find('\n'), why.size()), "; nor is it a DreamZero folder (no config.json)");
    if (const std::string hint = download_hint(source); is_cached) {
      why += fmt::format("\n{} is in the Hugging Face cache as {}, which has no config.json", source, *files);
    } else if (!hint.empty()) {
      why += "\n" + hint;
    }
    return Error{run.error().code(), why};
  }
  TROUPE_ASSIGN(const CheckpointEntry newest, newest_checkpoint(run->checkpoints()));
  return CheckpointPlace{.folder = newest.directory, .run = run->root()};
}

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

}  // namespace troupe::workers

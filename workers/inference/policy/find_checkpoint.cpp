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

/// RUN/checkpoints/NAME of a run that is named as in find_run. None for another form, or without such a run. Errors:
/// not_found (the run has no checkpoint of that name).
Result<std::optional<CheckpointPlace>> find_in_run(const std::string& source, const std::string& run_root) {
  const std::optional<CheckpointPlace> none;
  const fs::path path = source, folder = path.parent_path();
  if (folder.filename() != "checkpoints") return none;
  const auto run = find_run(folder.parent_path().string(), run_root);
  if (!run) return none;
  const std::string name = path.filename().string();
  CheckpointPlace place{.folder = run->checkpoints() + "/" + name, .run = run->root()};
  if (checkpoint_kind(place.folder)) return std::optional(place);
  return Error{Errc::not_found, fmt::format("run {} has no checkpoint '{}' (checkpoint.keep_best keeps the one called "
                                            "{}); the run alone means its newest",
                                            run->root(), name, kBestLink)};
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
  TROUPE_ASSIGN(const auto named, find_in_run(source, run_root));
  if (named) return *named;
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

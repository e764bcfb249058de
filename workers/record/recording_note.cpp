#include "workers/record/recording_note.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "data/lerobot/file_checks.h"

namespace troupe::workers {

Result<std::optional<std::int64_t>> recorded_time_limit(const std::string& root) {
  const std::string path = fmt::format("{}/{}", root, kRecordingNote);
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::optional<std::int64_t>();
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  const auto note = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!note.is_object() || !note.contains(kRecordedTimeLimit) || !note[kRecordedTimeLimit].is_number_integer()) {
    return Error{Errc::data_loss, fmt::format("{}: wanted an object with {}, a number; record the demonstrations anew",
                                              path, kRecordedTimeLimit)};
  }
  return std::optional(note[kRecordedTimeLimit].get<std::int64_t>());
}

}  // namespace troupe::workers

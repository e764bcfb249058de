#pragma once

// Internal to data/convert: what is finished, so that a killed conversion goes on (docs/dataset-convert.md).
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "base/append_file.h"
#include "base/result.h"

namespace troupe::data {

/// Folder of the plan and the journal, relative to the output.
inline constexpr const char* kConvertFolder = ".troupe/convert";

/// The file journal.jsonl: one line per finished task, {"task": n, "bytes": [size of each file], "stats": {...}}. Of
/// several lines of a task the last one counts. append() is thread-safe; all other calls are for one thread, before or
/// after the appending.
class ConvertJournal {
 public:
  /// Opens or makes the journal; a torn last line is cut off. Entries whose task is not below `tasks` are damage.
  static Result<ConvertJournal> open(const std::string& path, std::size_t tasks);

  /// True when the task is finished and not forgotten.
  bool has(std::size_t task) const { return places_.count(task) > 0; }
  /// Finished tasks.
  std::size_t size() const { return places_.size(); }
  /// The entry as it was appended. Errors: not_found, data_loss.
  Result<nlohmann::ordered_json> entry(std::size_t task) const;
  /// Forgets a task, whose files turned out to be missing; it will be appended again.
  void forget(std::size_t task) { places_.erase(task); }
  /// Appends and syncs. Fault point convert.journal (subject: the task).
  Result<void> append(std::size_t task, const nlohmann::ordered_json& entry);

 private:
  ConvertJournal(std::string path, AppendFile file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  AppendFile file_;
  /// Offset of a task's last line.
  std::map<std::size_t, std::uint64_t> places_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

}  // namespace troupe::data

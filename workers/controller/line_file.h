#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/append_file.h"

namespace troupe::workers {

/// Lines for people and programs (events.jsonl, bad_clips.jsonl, quarantine.jsonl) on a disk that may be full for a
/// while. A line is handed to the kernel when it is written. One that cannot be is lost and counted, the file is opened
/// anew for the next one, which cuts off what is half there, and once that succeeds the loss is told in front of it.
/// Made by its first line. Not thread-safe.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// Writes `line`, to which it adds the newline. `lost(n)` makes the line that says that n lines are missing here. A
  /// failure is logged once, until a line is written again.
  template <class Lost>
  void write(const std::string& line, Lost lost) {
    if (lost_ > 0 && put(lost(lost_))) lost_ = 0;
    if (lost_ > 0 || !put(line)) ++lost_;
  }

 private:
  /// False: nothing of the line is in the file, or half of it, which the next open() cuts off.
  bool put(const std::string& line);

  const std::string path_;
  std::optional<AppendFile> file_;
  std::int64_t lost_ = 0;
};

}  // namespace troupe::workers

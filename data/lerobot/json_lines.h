#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// One line of a JSON-lines file, without its end. `text` is valid during the call that gets it.
struct JsonLine {
  std::string_view text;
  /// From 1.
  std::int64_t number = 0;
  /// Bytes from the start of the file.
  std::int64_t offset = 0;
};

/// Calls `take` with every line that is not blank, one in memory at a time; what it throws of nlohmann::json becomes an
/// error. Errors: those of require_regular_file; those of `take`, with file and line; data_loss for a line of more than
/// kMostJsonBytes.
Result<void> each_json_line(const std::string& path, const std::function<Result<void>(const JsonLine&)>& take);

}  // namespace troupe::data

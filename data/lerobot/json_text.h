#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// Arrays and objects inside one another in the JSON of a dataset; LeRobot's and GEAR's files have fewer than ten.
inline constexpr int kMostJsonDepth = 64;

/// Bytes of one value, a line of a JSON-lines file or else a whole file: it takes up to fifty times its text in memory.
inline constexpr std::size_t kMostJsonBytes = std::size_t{32} << 20;

/// Refuses a text of more than kMostJsonBytes, with a zero byte, or nested deeper than kMostJsonDepth, before anything
/// is built of it: a value of that depth takes a hundred times its text in memory, and what walks it overflows the
/// stack. Errors: invalid_argument.
Result<void> check_json_text(std::string_view text);

/// A text of JSON that comes with a dataset: all of them are parsed here. `Json`: nlohmann::json, or ordered_json.
/// Errors: invalid_argument (no JSON, too long, nested too deep); the caller names the file.
template <class Json>
Result<Json> parse_json(std::string_view text) {
  TROUPE_TRY(check_json_text(text));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(e.what());
  }
}

}  // namespace troupe::data

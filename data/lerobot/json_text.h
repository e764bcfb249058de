#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// Arrays and objects inside one another in the JSON of a dataset; LeRobot's and GEAR's files have fewer than ten.
inline constexpr int kMostJsonDepth = 64;

/// Refuses a text that is nested deeper than kMostJsonDepth, before anything is built of it: a value of that depth
/// takes a hundred times its text in memory, and what walks it overflows the stack. Errors: invalid_argument.
Result<void> check_json_depth(std::string_view text);

/// A text of JSON that comes with a dataset: all of them are parsed here. `Json`: nlohmann::json, or ordered_json.
/// Errors: invalid_argument (no JSON, nested too deep); the caller names the file.
template <class Json>
Result<Json> parse_json(std::string_view text) {
  TROUPE_TRY(check_json_depth(text));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(e.what());
  }
}

}  // namespace troupe::data

#pragma once

// Internal to data/lerobot: numbers of metadata files.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// A value for a message. Lists and objects are not written out: a damaged or hostile file may nest them without end.
template <class Json>
std::string text_of_value(const Json& value) {
  return value.is_structured() && !value.empty() ? std::string("an ") + value.type_name() : value.dump();
}

/// The whole number `value`; 5.0 is one. Unlike a conversion of nlohmann::json it takes no fraction, bool or text.
/// Errors: invalid_argument, naming value and `key`, which is where it stands.
template <class Json>
Result<std::int64_t> as_whole_number(const Json& value, const char* key) {
  if (value.is_number_unsigned() &&
      value.template get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return value.template get<std::int64_t>();
  if (value.is_number_integer() && !value.is_number_unsigned()) return value.template get<std::int64_t>();
  const double number = value.is_number_float() ? value.template get<double>() : 0.5;
  if (std::trunc(number) == number && std::abs(number) < 1e15) return static_cast<std::int64_t>(number);
  return invalid_argument(fmt::format("{} is {}; a whole number is wanted", key, text_of_value(value)));
}

/// The whole number json[key]. Errors: as above. Throws what json.at throws for a key that is absent.
template <class Json>
Result<std::int64_t> whole_number(const Json& json, const char* key) {
  return as_whole_number(json.at(key), key);
}

/// The list of whole numbers json[key]. Errors: as above, and invalid_argument for what is no list.
template <class Json>
Result<std::vector<std::int64_t>> whole_numbers(const Json& json, const char* key) {
  const auto& list = json.at(key);
  if (!list.is_array())
    return invalid_argument(fmt::format("{} is {}; a list of whole numbers is wanted", key, text_of_value(list)));
  std::vector<std::int64_t> out;
  for (const auto& value : list) {
    TROUPE_ASSIGN(const std::int64_t number, as_whole_number(value, key));
    out.push_back(number);
  }
  return out;
}

}  // namespace troupe::data

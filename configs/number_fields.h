#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hash.h"

namespace troupe::configs {

// Numbers in JSON files (manifests, ledgers, env_spec.json). All throw std::exception for anything else; readers turn
// it into an Error with the path. A plain conversion of nlohmann::json takes 1e300 for an integer, which C++ leaves
// undefined.

/// A number that they write as 16 hex digits, because JSON readers of other languages take large integers for doubles.
inline std::uint64_t hex_field(const nlohmann::json& value) {
  const auto& text = value.get_ref<const std::string&>();
  const auto number = from_hex(text);
  if (!number) throw std::runtime_error(fmt::format("'{}' is not 16 hex digits", text));
  return *number;
}

/// A whole number from -2^63 to 2^63 - 1, written without a fraction.
inline std::int64_t whole_field(const nlohmann::json& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kMost);
  if (!fits) throw std::runtime_error(fmt::format("a {} in the place of a whole number", value.type_name()));
  return value.get<std::int64_t>();
}

inline std::vector<std::int64_t> whole_list(const nlohmann::json& values) {
  if (!values.is_array()) throw std::runtime_error(fmt::format("a {} in the place of a list", values.type_name()));
  std::vector<std::int64_t> numbers;
  for (const auto& value : values) numbers.push_back(whole_field(value));
  return numbers;
}

inline std::map<std::string, std::int64_t> whole_map(const nlohmann::json& values) {
  if (!values.is_object()) throw std::runtime_error(fmt::format("a {} in the place of an object", values.type_name()));
  std::map<std::string, std::int64_t> numbers;
  for (const auto& [name, value] : values.items()) numbers[name] = whole_field(value);
  return numbers;
}

}  // namespace troupe::configs

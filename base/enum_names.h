#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/namespaces.h"

namespace troupe::base {

/// An enum whose names stand in one table: a function `enum_names(E)` beside it, found by its argument, that returns a
/// std::array of one literal a value, in the order of the values from 0. An empty text stands for no value.
///     enum class Fruit { apple, pear };
///     constexpr auto enum_names(Fruit) { return std::array{"apple", "pear"}; }
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  enum_names(value).size();
};

/// The name of a value; "unknown" for a number that is no value. Valid for the life of the process.
template <NamedEnum E>
constexpr std::string_view enum_name(E value) noexcept {
  const auto names = enum_names(value);
  const auto at = static_cast<std::size_t>(value);
  return at < names.size() && names[at][0] != '\0' ? names[at] : "unknown";
}

/// The value of a name; nothing for another text.
template <NamedEnum E>
constexpr std::optional<E> enum_value(std::string_view name) noexcept {
  const auto names = enum_names(E{});
  const auto found = std::find(names.begin(), names.end(), name);
  if (name.empty() || found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

}  // namespace troupe::base

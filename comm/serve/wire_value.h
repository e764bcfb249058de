#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "comm/serve/ndarray.h"

namespace troupe::comm {

struct WireValue;
/// An entry of a map.
struct WirePair;
using WireBytes = std::vector<std::byte>;
using WireArray = std::vector<WireValue>;
/// Pairs in the order of the wire; no name twice.
using WireMap = std::vector<WirePair>;

/// What a policy client and a policy server exchange: a tree of plain values and arrays. Owns everything below it.
struct WireValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, WireBytes, WireArray, WireMap, NdArray> storage;

  /// Nil.
  WireValue() = default;
  template <std::same_as<bool> T>
  WireValue(T value);  // NOLINT: implicit by design, as are the next
  template <std::integral T>
  requires(!std::same_as<T, bool>) WireValue(T value);
  template <std::floating_point T>
  WireValue(T value);
  WireValue(const char* value);
  WireValue(std::string value);
  WireValue(WireBytes value);
  WireValue(WireArray value);
  WireValue(WireMap value);
  WireValue(NdArray value);

  /// The value as a T, or null when it is something else.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&storage);
  }
  bool is_nil() const { return std::holds_alternative<std::monostate>(storage); }

  friend bool operator==(const WireValue&, const WireValue&);
};

struct WirePair {
  std::string name;
  WireValue value;
  friend bool operator==(const WirePair&, const WirePair&) = default;
};

// Behind WirePair, which the storage holds: before, its vector is of an incomplete type.
template <std::same_as<bool> T>
WireValue::WireValue(T value) : storage(value) {}
template <std::integral T>
requires(!std::same_as<T, bool>) WireValue::WireValue(T value) : storage(static_cast<std::int64_t>(value)) {}
template <std::floating_point T>
WireValue::WireValue(T value) : storage(static_cast<double>(value)) {}
inline WireValue::WireValue(const char* value) : storage(std::string(value)) {}
inline WireValue::WireValue(std::string value) : storage(std::move(value)) {}
inline WireValue::WireValue(WireBytes value) : storage(std::move(value)) {}
inline WireValue::WireValue(WireArray value) : storage(std::move(value)) {}
inline WireValue::WireValue(WireMap value) : storage(std::move(value)) {}
inline WireValue::WireValue(NdArray value) : storage(std::move(value)) {}

/// The value of that name, or null.
const WireValue* find(const WireMap& map, std::string_view name);
/// The value of that name as a T; null where it is absent or of another type.
template <class T>
const T* find_as(const WireMap& map, std::string_view name) {
  const WireValue* value = find(map, name);
  return value == nullptr ? nullptr : value->as<T>();
}

/// What a value is, for messages: "a string", "a map of 3", "an array <f4 [7]".
std::string describe(const WireValue& value);
/// "<f4 [8, 7]"
std::string describe(const NdArray& array);

}  // namespace troupe::comm

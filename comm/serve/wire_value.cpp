#include "comm/serve/wire_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::comm {

bool operator==(const WireValue& a, const WireValue& b) { return a.storage == b.storage; }

const WireValue* find(const WireMap& map, std::string_view name) {
  for (const WirePair& pair : map) {
    if (pair.name == name) return &pair.value;
  }
  return nullptr;
}

std::string describe(const NdArray& array) { return fmt::format("{} [{}]", array.dtype, fmt::join(array.shape, ", ")); }

std::string describe(const WireValue& value) {
  if (value.is_nil()) return "nil";
  if (value.as<bool>()) return "a boolean";
  if (value.as<std::int64_t>()) return "an integer";
  if (value.as<double>()) return "a float";
  if (value.as<std::string>()) return "a string";
  if (const auto* bytes = value.as<WireBytes>()) return fmt::format("{} raw bytes", bytes->size());
  if (const auto* items = value.as<WireArray>()) return fmt::format("a list of {}", items->size());
  if (const auto* pairs = value.as<WireMap>()) return fmt::format("a map of {}", pairs->size());
  return "an array " + describe(*value.as<NdArray>());
}

}  // namespace troupe::comm

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/serve/wire_value.h"

namespace troupe::comm {

// Internal to comm/bridge: reads entries of a message's body. An entry that is absent or of another type reads as
// empty, 0 or false.

template <class T>
T field_of(const WireMap& body, std::string_view name) {
  const T* found = find_as<T>(body, name);
  return found == nullptr ? T() : *found;
}

inline std::string text(const WireMap& body, std::string_view name) { return field_of<std::string>(body, name); }
inline std::int64_t whole(const WireMap& body, std::string_view name) { return field_of<std::int64_t>(body, name); }
inline bool flag(const WireMap& body, std::string_view name) { return field_of<bool>(body, name); }

/// Whether a list of texts has `wanted`.
inline bool list_has(const WireMap& body, std::string_view name, std::string_view wanted) {
  const WireArray* all = find_as<WireArray>(body, name);
  return all != nullptr && std::find(all->begin(), all->end(), WireValue(std::string(wanted))) != all->end();
}

}  // namespace troupe::comm

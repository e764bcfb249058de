#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::comm {

/// Who an actor is in control messages.
struct ActorIdentity {
  std::string actor;  ///< "decoder/0"
  std::int64_t incarnation = 0;
  /// "decoder/0#1": unique over restarts.
  std::string instance() const { return actor + "#" + std::to_string(incarnation); }
  /// The identity that an instance names; nothing where the text is no instance.
  static std::optional<ActorIdentity> parse(std::string_view instance) {
    const std::size_t mark = instance.rfind('#');
    if (mark == std::string_view::npos || mark == 0) return std::nullopt;
    ActorIdentity identity{.actor = std::string(instance.substr(0, mark))};
    const char* const end = instance.data() + instance.size();
    const auto [last, error] = std::from_chars(instance.data() + mark + 1, end, identity.incarnation);
    if (error != std::errc() || last != end) return std::nullopt;
    return identity;
  }
};

/// "decoder/0" of "decoder/0#1", "second" of "second#77": the name that an actor or node keeps over its lives.
inline std::string name_without_life(std::string_view name) { return std::string(name.substr(0, name.find('#'))); }

}  // namespace troupe::comm

#pragma once

#include <optional>
#include <string>

#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// 1 MiB and 16 levels: a configuration comes from people, over the wire too, and is read before anything is trusted.
inline constexpr std::size_t kMaxConfigBytes = 1 << 20;
inline constexpr int kMaxConfigDepth = 16;

/// Splits a text into lines for excerpts.
std::shared_ptr<const SourceFile> make_source(const std::string& name, const std::string& text);

/// Parses one YAML document whose root is a map (an empty document is an empty map). Refuses duplicate keys, `<<` merge
/// keys, anchors and aliases, tags, non-scalar keys, several documents, more than kMaxConfigBytes, nesting deeper than
/// kMaxConfigDepth and anything that is not UTF-8. Every refusal is added to `errors` with its position; nothing is
/// returned when the text could not be read to its end.
std::optional<ConfigNode> read_yaml(const std::string& name, const std::string& text, Diagnostics& errors);

/// Parses the value of an override: a plain scalar taken as it is, a quoted scalar or a flow collection. Every node
/// gets the origin given. `key` names the override in errors.
std::optional<ConfigNode> read_yaml_value(const std::string& key, const std::string& text, const Origin& origin,
                                          Diagnostics& errors);

}  // namespace troupe::configs

#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

namespace troupe::configs {

/// What an actor of a job does. The names stand in actors' names ("decoder/0"), in plans, in messages, and as keys of
/// cluster.component_placement, isolation and elastic.
enum class RoleKind { learner, decoder, encoder, env, rollout, evaluator, checkpointer };
constexpr auto enum_names(RoleKind) {
  return std::array{"learner", "decoder", "encoder", "env", "rollout", "evaluator", "checkpointer"};
}
/// Plans, messages and keys hold a role by its name.
constexpr bool operator==(std::string_view name, RoleKind role) { return name == enum_name(role); }

/// The names in a key of cluster.component_placement: "learner, decoder" places both. An empty name stays.
inline std::vector<std::string> roles_of_key(std::string_view key) {
  std::vector<std::string> roles;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find(',', begin), key.size());
    std::string_view role = key.substr(begin, end - begin);
    while (role.starts_with(' ')) role.remove_prefix(1);
    while (role.ends_with(' ')) role.remove_suffix(1);
    roles.emplace_back(role);
    begin = end + 1;
  }
  return roles;
}

}  // namespace troupe::configs

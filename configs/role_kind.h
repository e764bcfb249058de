#pragma once

#include <array>
#include <string_view>

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

}  // namespace troupe::configs

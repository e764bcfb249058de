#pragma once

#include <chrono>

#include "base/namespaces.h"

namespace troupe::env {

/// What a reset may take beside env.step_timeout_s where it makes the environment, since there is none yet or it was
/// lost: those that are made for the first time load models and compile scenes.
inline constexpr std::chrono::seconds kMakeAllowance{60};

}  // namespace troupe::env

#pragma once

#include "base/namespaces.h"

namespace troupe::env {

/// "3.6.0": MuJoCo as it is loaded.
const char* mujoco_version() noexcept;

}  // namespace troupe::env

#pragma once

#include <memory>
#include <string_view>

#include "env/env_factory.h"

namespace troupe::env {

/// The factory of a MuJoCo task of the Gymnasium set by its Gymnasium id: HalfCheetah, Ant, Hopper, Walker2d, Humanoid,
/// Reacher, Swimmer, InvertedPendulum and InvertedDoublePendulum in -v4 and -v5, Pusher-v5. Compiles the model
/// once for all environments. Observation: one field "state". Options: obs_dtype = f32 (default) or f64. No profiles.
/// Errors: not_found; those of check_env_options; invalid_argument (another obs_dtype); those of compile_mjcf.
Result<std::shared_ptr<const EnvFactory>> make_gym_factory(std::string_view id, const EnvOptions& options);

}  // namespace troupe::env

#pragma once

#include "bench/env/sim_case.h"
#include "bench/env/step_rate.h"

namespace troupe::bench {

/// The least that a simulator of these tasks can do: each thread steps its share of the environments in turn, clips the
/// action, calls mj_step as often as the task skips frames, calls mj_rnePostConstraint, and resets where the episode
/// ends. No observation, no reward, no hand-over. Tasks: HalfCheetah-v5, Ant-v5, Humanoid-v5. Throws
/// std::runtime_error for others.
StepRate run_bare_loop(const SimCase& c, const EnvFactory& factory, const ActionTable& actions);

}  // namespace troupe::bench

#pragma once

#include <string>

#include "bench/env/sim_case.h"
#include "bench/env/step_rate.h"

namespace troupe::bench {

/// Our pool, stepped as a trainer would: with one group, every environment and then the next step; with more, each
/// group as soon as its block is back. Throws std::runtime_error.
StepRate run_pool(const SimCase& c, std::shared_ptr<const EnvFactory> factory, const ActionTable& actions);

/// A digest of all that the pool gives in such a run (one group) and of the states at its end: two builds that step
/// alike print the same. Throws std::runtime_error.
std::string pool_bits(const SimCase& c, std::shared_ptr<const EnvFactory> factory, const ActionTable& actions);

}  // namespace troupe::bench

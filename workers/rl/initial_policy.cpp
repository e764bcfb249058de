#include "workers/rl/initial_policy.h"

#include "comm/collective.h"
#include "workers/learner/initial_state.h"
#include "workers/rl/rl_trainer.h"

namespace troupe {

Result<UnitViews> initial_policy(const JobConfig& job, const PolicyNet& policy, std::shared_ptr<const Network> network) {
  const auto alone = join_thread_group(make_thread_group(1, std::chrono::seconds(60)), 0);
  Engine engine(std::move(network), rl_engine_options(job, policy));
  engine.attach(*alone);
  TROUPE_ASSIGN(const auto source, open_initial_state(job, engine.units()));
  if (source) {
    TROUPE_TRY(engine.load(*source));
  } else {
    engine.initialise(static_cast<std::uint64_t>(job.job.seed));
  }
  return engine.gather_views(policy.acting_units());
}

}  // namespace troupe

#include "workers/learner/rl/initial_policy.h"

#include <fmt/format.h>

#include "comm/collective/collective.h"
#include "workers/checkpoint/reader.h"
#include "workers/learner/initial_state.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {

Result<UnitViews> initial_policy(const JobConfig& job, const PolicyNet& policy,
                                 std::shared_ptr<const Network> network) {
  const auto alone = join_thread_group(make_thread_group(1, std::chrono::seconds(60)), 0);
  Engine engine(std::move(network), rl_engine_options(job, policy));
  TROUPE_TRY(engine.attach(*alone));
  TROUPE_ASSIGN(const auto source, open_initial_state(job, engine.units()));
  if (source) {
    TROUPE_TRY(engine.load(*source));
  } else {
    engine.initialise(static_cast<std::uint64_t>(job.job.seed));
  }
  return engine.gather_views(policy.acting_units());
}

Result<NormaliserState> initial_statistics(const JobConfig& job, NormaliserState none) {
  if (job.model.init.mode != "checkpoint") return none;
  const std::string& path = job.model.init.path;
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(path));
  TROUPE_ASSIGN(RlTrainerState state, RlTrainerState::read(*reader));
  const std::size_t stored = state.normaliser.observed.dim(), wanted = none.observed.dim();
  if (stored != wanted) {
    const auto reads = [](std::size_t dim) {
      return dim > 0 ? fmt::format("{} normalised numbers", dim) : std::string("observations as they are");
    };
    const std::string cure = (stored > 0) == (wanted > 0) ? "" : fmt::format(": set it to {}", stored > 0);
    return Error{
        Errc::failed_precondition,
        fmt::format("model.init.path: the policy of checkpoint {} reads {}, this job's {} (rollout.normalize_obs){}",
                    path, reads(stored), reads(wanted), cure)};
  }
  none.observed = std::move(state.normaliser.observed);
  if (state.normaliser.returned.dim() == none.returned.dim()) none.returned = std::move(state.normaliser.returned);
  return none;
}

}  // namespace troupe::workers

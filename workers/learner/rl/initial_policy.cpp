#include "workers/learner/rl/initial_policy.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "model/shard/flat_layout.h"
#include "model/shard/init.h"
#include "workers/checkpoint/reader.h"
#include "workers/learner/initial_state.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {

Result<UnitViews> initial_policy(const JobConfig& job, const PolicyNet& policy) {
  const std::vector<UnitSpec> units = state_units(policy.units());
  const std::vector<std::string>& acting = policy.acting_units();
  TROUPE_ASSIGN(const auto source, open_initial_state(job, units));
  UnitViews views;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (std::find(acting.begin(), acting.end(), units[u].name) == acting.end()) continue;
    const FlatLayout layout = make_flat_layout(units[u].params);
    at::Tensor flat = at::zeros({layout.numel}, at::kFloat);
    auto* const values = flat.mutable_data_ptr<float>();
    if (source) {
      TROUPE_TRY(source->read(u, StateKind::master, 0, layout.numel, values));
    } else {
      fill_initial(units[u], layout, static_cast<std::uint64_t>(job.job.seed), 0,
                   {values, static_cast<std::size_t>(layout.numel)});
    }
    views[units[u].name] = views_of(layout, flat.to(policy.acting_dtype()), /*leaves=*/false);
  }
  return views;
}

Result<NormaliserState> initial_statistics(const JobConfig& job, NormaliserState none) {
  // DreamZero normalises with the statistics of its recordings (EnvObserver)
  if (job.model.init.mode != "checkpoint" || learns_dreamzero(job)) return none;
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

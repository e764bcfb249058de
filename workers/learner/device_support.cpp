#include "workers/learner/device_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/attention_plan.h"
#include "kernels/device_module.h"
#include "placement/roles.h"

namespace troupe::workers {

namespace {

/// What learners on devices cannot do.
Result<void> check_learners(const JobConfig& config) {
  const auto refused = [](const std::string& why) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}; place learners on cores, as 'cluster.component_placement.learner={{node_group: node, "
                             "placement: \"0\"}}', or change it",
                             why)};
  };
  if (!trains_dreamzero(config))
    return refused(fmt::format("job.kind {}: on a device learners train DreamZero alone", enum_name(config.job.kind)));
  if (learns_dreamzero(config) && config.algorithm.policy_gradient.kl_beta > 0)
    return refused("algorithm.policy_gradient.kl_beta: learners on devices have no reference policy");
  if (learns_dreamzero(config) && config.algorithm.parity)
    return refused("algorithm.parity: learners on devices have the loss without it");
  if (config.optimizer.name != "adamw")
    return refused(fmt::format("optimizer.name {}: learners on devices update by adamw", config.optimizer.name));
  if (config.offload.activations) return refused("offload.activations: activations stay on a device");
  return {};
}

}  // namespace

Result<void> check_device_support(const JobConfig& config, const Plan& plan) {
  // learners are first
  const auto found = std::ranges::find_if(plan.actors, [&](const PlannedActor& actor) {
    return !actor.devices.empty() && placement::uses_devices(config, actor.role);
  });
  if (found == plan.actors.end()) return {};
  if (found->role == RoleKind::learner) TROUPE_TRY(check_learners(config));
  const auto& dit = config.model.dit;
  const auto head = dit.num_heads > 0 ? dit.dim / dit.num_heads : 0;
  if (!kernels::takes_head(head)) {
    return Error{Errc::invalid_argument,
                 fmt::format("model.dit.num_heads: heads of {} channels; attention on devices takes {}; place {}s on "
                             "cores, as 'cluster.component_placement.{}={{node_group: node, placement: \"0\"}}', or "
                             "change it",
                             head, kernels::kTakenHeads, found->role, found->role)};
  }
  return kernels::load_device_module();
}

}  // namespace troupe::workers

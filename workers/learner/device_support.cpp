#include "workers/learner/device_support.h"

#include <fmt/format.h>

#include <string>

#include "kernels/attention_plan.h"
#include "kernels/device_module.h"

namespace troupe::workers {

Result<void> check_device_support(const JobConfig& config, const Plan& plan) {
  const PlannedActor* first = find_actor(plan, "learner/0");
  if (first == nullptr || first->devices.empty()) return {};
  const auto refused = [](const std::string& why) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}; place learners on cores, as 'cluster.component_placement.learner={{node_group: node, "
                             "placement: \"0\"}}', or change it",
                             why)};
  };
  if (trains_agent(config))
    return refused(fmt::format("job.kind {}: on a device learners of this build fine-tune DreamZero alone",
                               enum_name(config.job.kind)));
  if (config.optimizer.name != "adamw")
    return refused(fmt::format("optimizer.name {}: learners on devices update by adamw", config.optimizer.name));
  if (config.offload.activations) return refused("offload.activations: activations stay on a device");
  const auto& dit = config.model.dit;
  const auto head = dit.num_heads > 0 ? dit.dim / dit.num_heads : 0;
  if (!kernels::takes_head(head))
    return refused(fmt::format("model.dit.num_heads: heads of {} channels; attention on devices takes {}", head,
                               kernels::kTakenHeads));
  return kernels::load_device_module();
}

}  // namespace troupe::workers

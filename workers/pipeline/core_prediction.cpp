#include "workers/pipeline/core_prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "workers/pipeline/core_timing.h"
#include "workers/pipeline/planned_kernels.h"

namespace troupe::workers {
namespace {

std::vector<const PlannedActor*> learners_of(const Plan& plan) {
  std::vector<const PlannedActor*> learners;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.role == "learner") learners.push_back(&actor);
  }
  return learners;
}

Error nothing(const std::string& why) { return {Errc::failed_precondition, why}; }

}  // namespace

bool steps_on_cores(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  const auto learners = learners_of(plan);
  return job.job.kind == JobKind::sft && cost.blocks > 0 && !learners.empty() && learners.front()->devices.empty();
}

Result<CorePrediction> predict_on_cores(const JobConfig& job, const ModelCost& cost, const Plan& plan,
                                        const std::optional<CoreRates>& rates) {
  if (!rates) return nothing("the rates of these cores are not measured; only the machine that plans is");
  const auto learners = learners_of(plan);
  if (std::any_of(learners.begin(), learners.end(), [](const auto* learner) { return learner->node != 0; }))
    return nothing("learners are planned on other machines, whose rates are not measured");
  const bool is_bf16 = job.precision.param == "bf16";
  CoreStep cores{.units = {},
                 .threads = static_cast<int>(learners.front()->threads),
                 .transfer = plan.collective == "gloo" ? KernelFamily::gloo_transfer : KernelFamily::thread_transfer};
  if (learners.size() > 1 && rates->of(cores.transfer, false) == KernelFeatures{})
    return nothing(fmt::format("how fast ranks send to each other by {} is not measured", plan.collective));
  CorePrediction prediction{.ranks = static_cast<int>(learners.size()), .threads = cores.threads};
  TROUPE_ASSIGN(prediction.step, planned_step(job, cost, plan));
  cores.units = planned_kernels(job, plan, plan.products);
  prediction.product_rate = rates->products[is_bf16 && plan.products != "widened"];
  const bool fills_machine = prediction.ranks * prediction.threads >= rates->threads;
  prediction.timing = time_step(
      prediction.step.operations,
      [&](const Op& op) { return seconds_on_cores(op, *prediction.step.plan, cores, *rates); },
      fills_machine ? StreamSharing::in_turn : StreamSharing::beside);
  prediction.samples_per_second = static_cast<double>(plan.batch.global) / prediction.timing.seconds;
  prediction.product_flops = prediction.ranks * product_flops(prediction.step, cores.units);
  return prediction;
}

std::string to_text(const CorePrediction& p) {
  const StepTiming& timing = p.timing;
  const auto share = [&](double seconds) { return 100 * seconds / timing.seconds; };
  std::string text = fmt::format(
      "  predicted     {:.3g} s a step, {:.3g} samples/s with features from the cache, at the rates that were measured "
      "here\n",
      timing.seconds, p.samples_per_second);
  text += fmt::format(
      "  predicted     products {:.0f} %, attention {:.0f} %, other kernels {:.0f} %, between ranks {:.0f} %\n",
      share(timing.products), share(timing.attention), share(timing.moving),
      std::max(0.0, 100 - share(timing.products + timing.attention + timing.moving)));
  text += fmt::format("  predicted     product rate share {:.0f} % of {:.0f} GFLOP/s (measured: one large product)\n",
                      100 * p.product_share(timing.seconds), p.product_rate / 1e9);
  return text;
}

}  // namespace troupe::workers

#include "workers/pipeline/step_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/wan/model_cost.h"
#include "placement/known_devices.h"
#include "placement/memory_model.h"
#include "placement/planner.h"
#include "placement/recompute_plan.h"
#include "workers/pipeline/planned_kernels.h"

namespace troupe::workers {
namespace {

/// Bytes/s of a device's memory by its datasheet.
std::optional<double> memory_rate(const std::string& device) {
  if (device == "H100") return 3.35e12;
  if (device == "H200") return 4.8e12;
  return std::nullopt;
}

/// What ranks of that device are assumed to reach; docs/learner-engine.md#on-devices has where each is from.
std::optional<DeviceRates> rates_of(const RatesFor& of) {
  const auto memory = memory_rate(of.device);
  if (!memory) return std::nullopt;
  DeviceRates rates;
  rates.products = 700e12;
  rates.attention = of.is_long ? 450e12 : 200e12;
  rates.memory = 0.85 * *memory;
  rates.link = of.is_one_node ? 370e9 : 45e9;
  rates.offload = 50e9;
  rates.kernel_launch = 5e-6;
  rates.graph_launch = 10e-6;
  rates.kernel_gap = 1e-6;
  rates.collective = 12e-6;
  rates.hop = of.is_one_node ? 1.5e-6 : 6e-6;
  return rates;
}

const PlannedActor& first_learner(const Plan& plan) {
  return *std::find_if(plan.actors.begin(), plan.actors.end(), [](const auto& a) { return a.role == "learner"; });
}

bool is_one_node(const Plan& plan) {
  std::set<std::int64_t> nodes;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.role == "learner") nodes.insert(actor.node);
  }
  return nodes.size() == 1;
}

/// Copies of the job with another number of slots or with offload, each with the setting that changes, such as
/// "offload.states=true".
std::vector<std::pair<std::string, JobConfig>> variants_of(const JobConfig& job) {
  std::vector<std::pair<std::string, JobConfig>> variants;
  const auto add = [&](const std::string& change, const auto& set) {
    JobConfig variant = job;
    set(variant);
    variants.emplace_back(change, std::move(variant));
  };
  for (const std::int64_t slots : {2, 3, 4, 6}) {
    if (slots != job.parallelism.param_slots)
      add(fmt::format("parallelism.param_slots={}", slots),
          [slots](JobConfig& variant) { variant.parallelism.param_slots = slots; });
  }
  for (const std::int64_t slots : {1, 2, 3}) {
    if (slots != job.parallelism.grad_slots)
      add(fmt::format("parallelism.grad_slots={}", slots),
          [slots](JobConfig& variant) { variant.parallelism.grad_slots = slots; });
  }
  if (!job.offload.states) add("offload.states=true", [](JobConfig& variant) { variant.offload.states = true; });
  if (!job.offload.activations)
    add("offload.activations=true", [](JobConfig& variant) { variant.offload.activations = true; });
  return variants;
}

/// Adds the feasible plans of these modes and of the levels that the job allows, but none that is like a plan already
/// there. Adds nothing where steps of the job on these devices cannot be predicted.
Result<void> add_plans(const ClusterSnapshot& cluster, const JobConfig& job, const ModelCost& cost,
                       const std::vector<std::string>& modes, const std::string& change, const AdjustRates& adjust,
                       std::vector<PredictedPlan>& plans) {
  constexpr double kSame = 1e-3;  // of the time
  const bool frees_levels = job.activation_checkpoint.mode == "auto" && job.activation_checkpoint.counts.empty();
  const std::vector<std::string> levels = frees_levels
                                              ? std::vector<std::string>{"auto", "none", "cheap", "attention", "full"}
                                              : std::vector{job.activation_checkpoint.mode};
  for (const std::string& mode : modes) {
    for (const std::string& level : levels) {
      JobConfig variant = job;
      variant.parallelism.mode = mode;
      variant.activation_checkpoint.mode = level;
      auto outcome = make_plan(cluster, variant, cost);
      auto* plan = std::get_if<Plan>(&outcome);
      if (plan == nullptr) continue;
      TROUPE_ASSIGN(auto prediction, predict_step(variant, cost, *plan, adjust));
      if (!prediction) return {};
      const auto is_like = [&](const PredictedPlan& known) {
        const double ratio = known.prediction.timing.seconds / prediction->timing.seconds;
        return known.plan.sharding == plan->sharding && recompute_text(known.plan) == recompute_text(*plan) &&
               std::abs(ratio - 1) < kSame;
      };
      if (std::none_of(plans.begin(), plans.end(), is_like))
        plans.push_back({std::move(*plan), std::move(*prediction), change});
    }
  }
  return {};
}

}  // namespace

Result<std::optional<StepPrediction>> predict_step(const JobConfig& job, const ModelCost& cost, const Plan& plan,
                                                   const AdjustRates& adjust) {
  using Nothing = std::optional<StepPrediction>;
  const PlannedActor& learner = first_learner(plan);
  if (learner.devices.empty() || job.job.kind != JobKind::sft || cost.blocks == 0) return Nothing();
  const auto& node = plan.nodes[static_cast<std::size_t>(learner.node)];
  const std::string& device = node.devices[static_cast<std::size_t>(learner.devices.front())].model;
  const DitCost dit = dit_cost(job.model, job.data.window, gathered_bytes_per_param(job));
  constexpr std::int64_t kLongSequence = 4096;
  const RatesFor of{device, dit.executed_tokens >= kLongSequence, is_one_node(plan)};
  auto rates = rates_of(of);
  const auto peak = bf16_peak_tflops(device);
  if (!rates || !peak || job.precision.param != "bf16") return Nothing();
  if (adjust) adjust(of, *rates);
  StepPrediction prediction{.device = device, .step = {}, .timing = {}, .rates = *rates};
  TROUPE_ASSIGN(prediction.step, planned_step(job, cost, plan));
  const DeviceStep device_step{.units = planned_kernels(job, plan, "native"), .graphs = job.training.cuda_graphs};
  prediction.timing = time_step(
      prediction.step.operations,
      [&](const Op& op) { return seconds_on_device(op, *prediction.step.plan, device_step, *rates); },
      StreamSharing::beside);
  const double seconds = prediction.timing.seconds;
  prediction.samples_per_second = static_cast<double>(plan.batch.micro * plan.batch.accumulation) / seconds;
  prediction.peak = *peak * 1e12;
  prediction.mfu = 3 * dit.forward_flops() * prediction.samples_per_second / prediction.peak;
  prediction.hfu = product_flops(prediction.step, device_step.units) / seconds / prediction.peak;
  return Nothing(std::move(prediction));
}

Result<std::vector<PredictedPlan>> predicted_plans(const ClusterSnapshot& cluster, const JobConfig& job,
                                                   const ModelCost& cost, const AdjustRates& adjust) {
  const bool frees_mode = job.parallelism.mode == "auto";
  const std::vector<std::string> modes =
      frees_mode ? std::vector<std::string>{"zero1", "zero2", "zero3"} : std::vector{job.parallelism.mode};
  std::vector<PredictedPlan> plans;
  TROUPE_TRY(add_plans(cluster, job, cost, modes, "", adjust, plans));
  if (plans.empty()) return plans;
  const auto is_faster = [](const PredictedPlan& a, const PredictedPlan& b) {
    return a.prediction.samples_per_second > b.prediction.samples_per_second;
  };
  std::stable_sort(plans.begin(), plans.end(), is_faster);
  const std::string chosen = plans.front().plan.sharding;
  for (const auto& [change, variant] : variants_of(job))
    TROUPE_TRY(add_plans(cluster, variant, cost, {chosen}, change, adjust, plans));
  std::stable_sort(plans.begin() + 1, plans.end(), is_faster);
  return plans;
}

std::string to_text(const std::vector<PredictedPlan>& plans) {
  if (plans.empty()) return {};
  const StepPrediction& best = plans.front().prediction;
  const StepTiming& timing = best.timing;
  const auto share = [&](double seconds) { return 100 * seconds / timing.seconds; };
  const double own = timing.products + timing.attention + timing.moving + timing.exposed_communication;
  std::string text = fmt::format(
      "  predicted     {:.2f} samples/s per {} with features from the cache, {:.2f} s a step: "
      "MFU {:.1f} %, HFU {:.1f} % of {:.0f} TFLOP/s (datasheet)\n",
      best.samples_per_second, best.device, timing.seconds, 100 * best.mfu, 100 * best.hfu, best.peak / 1e12);
  text += fmt::format(
      "  predicted     products {:.0f} %, attention {:.0f} %, memory traffic {:.0f} %, "
      "exposed communication {:.0f} % ({:.0f} ms), launches {:.0f} %\n",
      share(timing.products), share(timing.attention), share(timing.moving), share(timing.exposed_communication),
      1e3 * timing.exposed_communication, std::max(0.0, share(timing.seconds - own)));
  text += fmt::format(
      "  predicted     at {}: products {:.0f} and attention {:.0f} TFLOP/s, memory {:.2f} TB/s, links {:.0f} GB/s\n",
      best.rates.measured.empty() ? "assumed rates, not measured"
                                  : "assumed rates but for " + best.rates.measured + ", measured",
      best.rates.products / 1e12, best.rates.attention / 1e12, best.rates.memory / 1e12, best.rates.link / 1e9);
  for (std::size_t i = 1; i < std::min<std::size_t>(plans.size(), 4); ++i) {
    const PredictedPlan& other = plans[i];
    text += fmt::format("  predicted     {} {}{}{}: {:.2f} samples/s, recompute {}\n",
                        i == 1 ? "next:" : "then:", other.plan.sharding, other.change.empty() ? "" : " with ",
                        other.change, other.prediction.samples_per_second, recompute_text(other.plan));
  }
  return text;
}

}  // namespace troupe::workers

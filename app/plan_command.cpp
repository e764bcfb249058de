// `troupe plan` and `troupe config`: show what a job means without starting anything.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/commands.h"
#include "app/env_isolation.h"
#include "app/exit_code.h"
#include "app/job_setup.h"
#include "app/preflight.h"
#include "app/product_rates.h"
#include "app/step_times.h"
#include "base/cache_home.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "configs/schema_export.h"
#include "env/registry/registry.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "workers/node/inventory.h"
#include "workers/pipeline/core_prediction.h"
#include "workers/pipeline/learning_work.h"
#include "workers/pipeline/measured_rates.h"
#include "workers/pipeline/model_cost.h"
#include "workers/pipeline/planned_step.h"
#include "workers/pipeline/step_prediction.h"

namespace troupe::app {
namespace {

/// What is known of a plan's step before it runs.
struct Prediction {
  /// on devices
  std::vector<PredictedPlan> plans;
  /// on cores, or why there is none; nothing for steps that are not predicted there
  std::optional<Result<CorePrediction>> cores;
};

Result<void> write_timeline(const std::string& path, const Prediction& predicted) {
  const auto write = [&](const StepTiming& timing, const PlannedStep& step) {
    return write_file_durably(path, to_chrome_trace(timing, step.operations, *step.plan));
  };
  if (!predicted.plans.empty()) {
    const StepPrediction& best = predicted.plans.front().prediction;
    return write(best.timing, best.step);
  }
  if (predicted.cores && *predicted.cores) return write((*predicted.cores)->timing, (*predicted.cores)->step);
  if (predicted.cores) return predicted.cores->error().with("--timeline");
  return Error{Errc::failed_precondition,
               "--timeline: only steps of supervised jobs on this machine's cores, or in bf16 on an H100 or H200, can "
               "be predicted; see --pretend"};
}

/// What scripts/gpu-check measured for this user; nothing where it has not run.
Result<AdjustRates> kept_device_rates() {
  const std::string home = cache_home(), file = home + "/troupe/device_rates.json";
  if (home.empty() || !std::filesystem::exists(file)) return AdjustRates();
  TROUPE_ASSIGN(const auto json, read_file(file));
  return measured_rates(json, file);
}

std::string to_text(const Prediction& predicted) {
  if (!predicted.cores) return workers::to_text(predicted.plans);
  if (*predicted.cores) return workers::to_text(**predicted.cores);
  return fmt::format("  predicted     nothing: {}\n", predicted.cores->error().message());
}

}  // namespace

int plan_command(const PlanOptions& options) {
  auto config = load_or_explain(options.job, options.overrides);
  if (!config) return kUsage;
  print_warnings(*config);
  const auto env = env_spec_of(config->job.env);
  if (!env) return explain(env.error(), *config);
  const bool is_here = options.pretend.empty();
  const auto stepped = settle_env_isolation(*config, *env, {.is_here = is_here});
  auto cost = model_cost(config->job, *env);
  if (!cost) return explain(cost.error(), *config);
  ClusterSnapshot cluster = own_cluster();
  if (!is_here) {
    auto pretended = pretend_cluster(options.pretend);
    if (!pretended) return complain(pretended.error(), kUsage);
    cluster = std::move(*pretended);
  } else {
    add_product_rates(cluster, config->job);
  }
  auto outcome = make_plan(cluster, config->job, *cost);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    return explain(*infeasible, *config);
  }
  const auto rates = kept_device_rates();
  if (!rates) return complain(rates.error(), kUsage);
  auto plans = predicted_plans(cluster, config->job, *cost, *rates);
  if (!plans) return complain(plans.error(), kUsage);
  Prediction predicted{.plans = std::move(*plans), .cores = {}};
  // where steps on devices can be predicted, the fastest; else what moves least and fits
  const Plan& plan = predicted.plans.empty() ? std::get<Plan>(outcome) : predicted.plans.front().plan;
  const bool shows = !options.timeline.empty() || !(options.json || options.schedule);
  if (shows && steps_on_cores(config->job, *cost, plan)) {
    predicted.cores.emplace(
        predict_on_cores(config->job, *cost, plan, is_here ? std::optional(own_core_rates()) : std::nullopt));
  }
  Preflight found = preflight(*config, *env, {}, &plan);
  if (is_here) look_at_devices(config->job, plan, found);
  warn(found);
  if (!options.timeline.empty()) {
    if (auto written = write_timeline(options.timeline, predicted); !written) return complain(written.error(), kUsage);
  }
  if (options.json) {
    fmt::print("{}", to_json(plan));
    return kOk;
  }
  if (options.schedule) {
    const auto step = planned_step(config->job, *cost, plan);
    if (!step) return complain(step.error(), kUsage);
    fmt::print("{}", to_text(*step));
    return kOk;
  }
  fmt::print("{}{}", to_table(plan, config->job), to_text(predicted));
  if (config->job.job.kind == JobKind::rl) {
    if (stepped) fmt::print("{}", isolation_line(*stepped));
    fmt::print("{}", item_line(config->job, is_here, is_here ? kept_step_time(config->job) : std::nullopt));
    if (learns_dreamzero(config->job)) fmt::print("{}", work_line(config->job, plan));
  }
  if (options.show_config) {
    fmt::print("{}", config->resolved_yaml);
  } else {
    fmt::print("effective config: {}   full dump: --show-config\n", config->key_summary());
  }
  fmt::print("OK (exit 0)\n");
  return kOk;
}

int config_command(const ConfigOptions& options) {
  if (options.schema) {
    fmt::print("{}", config_schema_json());
    return kOk;
  }
  if (options.markdown) {
    fmt::print("{}", config_markdown());
    return kOk;
  }
  if (options.job.empty()) {
    fmt::print(stderr, "troupe config: give a job, --schema or --markdown\n");
    return kUsage;
  }
  auto config = load_or_explain(options.job, options.overrides);
  if (!config) return kUsage;
  fmt::print("{}", config->resolved_yaml);
  return kOk;
}

}  // namespace troupe::app

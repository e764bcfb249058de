// `troupe plan` and `troupe config`: show what a job means without starting anything.
#include <fmt/format.h>

#include <cstdio>

#include "app/commands.h"
#include "app/exit_code.h"
#include "app/job_setup.h"
#include "app/preflight.h"
#include "app/product_rates.h"
#include "base/durable_file.h"
#include "configs/schema_export.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "workers/node/inventory.h"
#include "workers/pipeline/model_cost.h"
#include "workers/pipeline/planned_step.h"
#include "workers/pipeline/step_prediction.h"

namespace troupe::app {
namespace {

Result<void> write_timeline(const std::string& path, const std::vector<PredictedPlan>& plans) {
  if (plans.empty()) {
    return Error{
        Errc::failed_precondition,
        "--timeline: only steps of supervised jobs in bf16 on an H100 or H200 can be predicted; see --pretend"};
  }
  const StepPrediction& best = plans.front().prediction;
  return write_file_durably(path, to_chrome_trace(best.timing, best.step.operations, *best.step.plan));
}

}  // namespace

int plan_command(const PlanOptions& options) {
  auto config = load_or_explain(options.job, options.overrides);
  if (!config) return kUsage;
  print_warnings(*config);
  auto cost = model_cost(config->job);
  if (!cost) return explain(cost.error(), *config);
  ClusterSnapshot cluster = own_cluster();
  if (!options.pretend.empty()) {
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
  const auto predicted = predicted_plans(cluster, config->job, *cost);
  if (!predicted) return complain(predicted.error(), kUsage);
  // where steps can be predicted, the fastest; else what moves least and fits
  const Plan& plan = predicted->empty() ? std::get<Plan>(outcome) : predicted->front().plan;
  warn(preflight(*config, {}, &plan));
  if (!options.timeline.empty()) {
    if (auto written = write_timeline(options.timeline, *predicted); !written) return complain(written.error(), kUsage);
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
  fmt::print("{}{}", to_table(plan, config->job), to_text(*predicted));
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

#include "app/expected_step.h"

#include "app/product_rates.h"
#include "base/log.h"
#include "workers/pipeline/core_prediction.h"

namespace troupe::app {

std::optional<StepExpectation> expected_step(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  if (!steps_on_cores(job, cost, plan)) return std::nullopt;
  const auto predicted = predict_on_cores(job, cost, plan, own_core_rates());
  if (!predicted) {
    log::info("the step's time is not predicted: {}", predicted.error().message());
    return std::nullopt;
  }
  return StepExpectation{.seconds = predicted->timing.seconds,
                         .product_flops = predicted->product_flops,
                         .product_rate = predicted->product_rate};
}

}  // namespace troupe::app

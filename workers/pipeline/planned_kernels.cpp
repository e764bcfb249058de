#include "workers/pipeline/planned_kernels.h"

#include <ATen/ATen.h>

#include "kernels/product.h"
#include "placement/planner.h"
#include "workers/learner/engine_options.h"

namespace troupe::workers {
namespace {

/// The process' form of products, for as long as this lives.
class FormScope {
 public:
  explicit FormScope(const std::string& form) : before_(product_form()) {
    if (const auto wanted = enum_value<ProductForm>(form)) set_product_form(*wanted);
  }
  ~FormScope() { set_product_form(before_); }
  FormScope(const FormScope&) = delete;
  FormScope& operator=(const FormScope&) = delete;

 private:
  const ProductForm before_;
};

}  // namespace

std::vector<UnitKernels> planned_kernels(const JobConfig& job, const Plan& plan, const std::string& form) {
  const FormScope scope(form);
  const auto dtype = job.precision.param == "bf16" ? at::kBFloat16 : at::kFloat;
  return unit_kernels(job.model, job.data.window, dtype, plan.batch.micro,
                      job_engine_options(decided_job(job, plan), /*run_dir=*/"").recompute);
}

double product_flops(const PlannedStep& step, const std::vector<UnitKernels>& units) {
  double flops = 0;
  for (const Op& op : step.operations) {
    if (op.kind != OpKind::forward && op.kind != OpKind::backward) continue;
    const UnitKernels& unit = units.at(static_cast<std::size_t>(op.unit));
    for (const KernelWork& work : op.kind == OpKind::forward ? unit.forward : unit.backward)
      flops += work.product_flops();
  }
  return flops;
}

}  // namespace troupe::workers

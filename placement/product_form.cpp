#include "placement/product_form.h"

namespace troupe::placement {

namespace {
constexpr double kWorthLeaving = 1.3;
}  // namespace

bool multiplies_bf16(const JobConfig& job) {
  return job.precision.param == "bf16" ||
         ((job.job.kind == JobKind::sft || learns_dreamzero(job)) && job.precision.encoders == "bf16");
}

std::string product_form(const JobConfig& job, const ProductRates& rates) {
  if (job.precision.products != "auto") return job.precision.products;
  const double own = rates.has_tiles ? rates.native : rates.widened;
  const double other = rates.has_tiles ? rates.widened : rates.native;
  const bool leaves = own > 0 && other >= kWorthLeaving * own;
  return rates.has_tiles != leaves ? "native" : "widened";
}

}  // namespace troupe::placement

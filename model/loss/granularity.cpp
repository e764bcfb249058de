#include "model/loss/granularity.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor reduce_to(const at::Tensor& x_NL, std::int64_t chunk, Granularity granularity) {
  TORCH_CHECK(x_NL.dim() == 2 && chunk > 0 && x_NL.size(1) > 0 && x_NL.size(1) % chunk == 0, "values of shape ",
              x_NL.sizes(), " cannot be split into ", chunk, " actions");
  const bool is_half = x_NL.scalar_type() == at::kBFloat16 || x_NL.scalar_type() == at::kHalf;
  auto x = (is_half ? x_NL.to(at::kFloat) : x_NL).reshape({x_NL.size(0), chunk, x_NL.size(1) / chunk});
  if (granularity == Granularity::token) return x;
  // a sum over one element is left out: its own backward would cost as much as the rest of a small loss
  auto action = x.size(2) == 1 ? x : x.sum(2, /*keepdim=*/true);
  if (granularity == Granularity::action || chunk == 1) return action;
  return action.sum(1, /*keepdim=*/true);
}

}  // namespace troupe::model

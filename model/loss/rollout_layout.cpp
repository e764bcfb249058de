#include "model/loss/rollout_layout.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor flatten_steps(const at::Tensor& x_TBK) {
  TORCH_CHECK(x_TBK.dim() == 3, "steps of shape ", x_TBK.sizes(), " are not [calls, environments, actions]");
  return x_TBK.transpose(1, 2).reshape({x_TBK.size(0) * x_TBK.size(2), x_TBK.size(1)});
}

at::Tensor unflatten_steps(const at::Tensor& x_SB, std::int64_t chunk) {
  TORCH_CHECK(x_SB.dim() == 2 && chunk > 0 && x_SB.size(0) % chunk == 0, "steps of shape ", x_SB.sizes(),
              " are not whole chunks of ", chunk);
  return x_SB.reshape({x_SB.size(0) / chunk, chunk, x_SB.size(1)}).transpose(1, 2).contiguous();
}

at::Tensor flatten_flags(const at::Tensor& x_T1BK) {
  const auto flat = flatten_steps(x_T1BK);
  const auto dropped = x_T1BK.size(2) - 1;
  return flat.narrow(0, dropped, flat.size(0) - dropped);
}

at::Tensor flatten_values(const at::Tensor& x_T1BK) {
  const auto flat = flatten_steps(x_T1BK);
  return flat.narrow(0, 0, flat.size(0) - x_T1BK.size(2) + 1);
}

}  // namespace troupe::model

#include "model/loss/loss_mask.h"

#include <ATen/ATen.h>

#include "model/loss/rollout_layout.h"

namespace troupe::model {

LossMask make_loss_mask(const at::Tensor& dones_T1BK) {
  const auto flags = flatten_flags(dones_T1BK).to(at::kBool);
  const auto steps = flags.size(0) - 1;
  const auto mask = flags.cumsum(0).eq(0).narrow(0, 0, steps);
  const auto counts = mask.sum(0, /*keepdim=*/true).expand_as(mask);
  const auto chunk = dones_T1BK.size(2);
  return {unflatten_steps(mask, chunk), unflatten_steps(counts, chunk)};
}

LossMask to_chunk_mask(const LossMask& actions) {
  return {actions.mask.any(2, /*keepdim=*/true), actions.n_valid.narrow(2, 0, 1).contiguous()};
}

}  // namespace troupe::model

#include "workers/learner/rl/present_critic.h"

#include <ATen/ATen.h>

namespace troupe::workers {

namespace {

/// [T,B,...] of every tensor as rows t * B + b.
Batch rows_of(const Batch& observation) {
  Batch rows;
  for (const auto& [key, tensor] : observation) rows[key] = tensor.flatten(0, 1);
  return rows;
}

}  // namespace

void value_again(RolloutBatch& batch, const PolicyNet& net, const UnitViews& views) {
  batch.value = net.value(views, rows_of(batch.observation)).view_as(batch.value);
  if (!batch.final_rows.defined()) return;
  at::Tensor values = at::zeros_like(batch.final_value).flatten(0, 1);
  if (batch.final_rows.numel() > 0) values.index_copy_(0, batch.final_rows, net.value(views, batch.final_observation));
  batch.final_value = values.view_as(batch.final_value);
}

}  // namespace troupe::workers

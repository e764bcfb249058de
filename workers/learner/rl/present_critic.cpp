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
  if (batch.final_observation.empty()) return;
  // an episode that ended with its environment lost has no final observation
  const at::Tensor ended = batch.terminated.logical_or(batch.truncated).any(-1).logical_and(batch.lost.logical_not());
  const at::Tensor rows = ended.flatten().nonzero().squeeze(1);
  at::Tensor values = at::zeros_like(batch.final_value).flatten(0, 1);
  if (rows.numel() > 0) {
    Batch finals = rows_of(batch.final_observation);
    for (auto& [key, tensor] : finals) tensor = tensor.index_select(0, rows);
    values.index_copy_(0, rows, net.value(views, finals));
  }
  batch.final_value = values.view_as(batch.final_value);
}

}  // namespace troupe::workers

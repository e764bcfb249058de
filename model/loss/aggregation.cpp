#include "model/loss/aggregation.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace troupe::model {

CellWeights make_cell_weights(const at::Tensor& mask_NC, Aggregation aggregation, const at::Tensor& valid_steps_N1,
                              std::int64_t max_episode_steps, const at::Tensor& scale) {
  TORCH_CHECK(mask_NC.dim() == 2, "the mask has shape ", mask_NC.sizes(), "; it must be [rows, cells]");
  TORCH_CHECK(!scale.defined() || scale.numel() == 1 || scale.numel() == 2, "the loss scale has ", scale.numel(),
              " numbers; it must have 1 or 2");
  const auto type = valid_steps_N1.defined() && valid_steps_N1.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  CellWeights w;
  w.mask = mask_NC.to(at::kBool).unsqueeze(2);
  const auto ones = w.mask.to(type);
  w.metric = scale.defined() ? ones * scale.reshape({-1})[0] : ones / ones.sum().clamp_min(1);
  if (aggregation == Aggregation::mean) {
    w.loss = w.metric;
    return w;
  }
  TORCH_CHECK(valid_steps_N1.defined() && max_episode_steps > 0,
              "aggregation trajectory needs the valid steps of every row's trajectory and the longest episode's steps");
  const auto share =
      ones * (static_cast<double>(max_episode_steps) / valid_steps_N1.to(type).clamp_min(1)).unsqueeze(2);
  w.loss = scale.defined() ? share * scale.reshape({-1})[scale.numel() - 1]
                           : share / std::max<std::int64_t>(1, mask_NC.numel());
  return w;
}

CellWeights shared_by_actions(const CellWeights& cells, const at::Tensor& executed_NK) {
  if (cells.mask.size(1) == executed_NK.size(1)) return cells;
  const auto executed = executed_NK.unsqueeze(2);
  const auto share = executed.to(cells.metric.scalar_type()) / executed.sum(1, /*keepdim=*/true).clamp_min(1);
  return {cells.mask.logical_and(executed), cells.metric * share, cells.loss * share};
}

at::Tensor weighted_sum(const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(x.dim() == 3 && weight.dim() == 3 && x.size(0) == weight.size(0), "entries ", x.sizes(),
              " do not fit weights ", weight.sizes());
  if (x.numel() == 0) return x.sum();
  const auto fitting = x.size(1) < weight.size(1) ? weight.sum(1, /*keepdim=*/true) : weight;
  const auto entries_per_cell = x.numel() / fitting.numel();
  const auto sum = (x * fitting).sum();
  return entries_per_cell == 1 ? sum : sum / entries_per_cell;
}

}  // namespace troupe::model

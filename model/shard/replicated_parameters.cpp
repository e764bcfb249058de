#include "model/shard/replicated_parameters.h"

#include <ATen/ATen.h>

#include "model/optim/adamw.h"

namespace troupe::model {

ReplicatedParameters::ReplicatedParameters(const std::vector<UnitSpec>& chain, const FlatLayout& layout, int rank,
                                           int world, at::ScalarType param_dtype)
    : layout_(layout), rank_(rank), begins_{0} {
  for (const auto& unit : chain) begins_.push_back(begins_.back() + unit.replicated.size());
  // gaps and padding are never written, so they stay zero
  parameters_ = at::zeros({layout.padded(world)}, param_dtype);
  gradients_ = at::zeros({layout.padded(world)}, at::kFloat);
}

std::span<const LayoutEntry> ReplicatedParameters::entries_of(std::size_t unit) const {
  return std::span(layout_.entries).subspan(begins_[unit], begins_[unit + 1] - begins_[unit]);
}

void ReplicatedParameters::add_parameters(std::size_t unit, ParamView& views) const {
  add_views(views, entries_of(unit), parameters_, /*leaves=*/true);
}

void ReplicatedParameters::add_gradients(std::size_t unit, ParamView& views) const {
  add_views(views, entries_of(unit), gradients_, /*leaves=*/false);
}

Result<void> ReplicatedParameters::gather(Collective& group, const at::Tensor& shard) {
  if (!stale_) return {};
  const DType dtype = parameters_.scalar_type() == at::kBFloat16 ? DType::bf16 : DType::f32;
  TROUPE_TRY(
      group.all_gather({parameters_.data_ptr(), parameters_.numel(), dtype}, {shard.data_ptr(), shard.numel(), dtype})
          ->wait());
  stale_ = false;
  return {};
}

Result<void> ReplicatedParameters::reduce(Collective& group, std::span<float> accumulator, bool first) {
  const auto count = static_cast<std::int64_t>(accumulator.size());
  const std::span<float> own(gradients_.data_ptr<float>() + rank_ * count, accumulator.size());
  // as for any unit: the first micro-batch's sum is the accumulator, a later one lands in the own part and is added
  const auto target = first ? accumulator : own;
  TROUPE_TRY(
      group.reduce_scatter({target.data(), count, DType::f32}, {gradients_.data_ptr(), gradients_.numel(), DType::f32})
          ->wait());
  if (!first) add_to(accumulator, own);
  return {};
}

}  // namespace troupe::model

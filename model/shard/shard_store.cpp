#include "model/shard/shard_store.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace troupe {

ShardStore::ShardStore(std::span<const FlatLayout> layouts, int world, at::ScalarType param_dtype) : begins_{0} {
  TROUPE_CHECK(param_dtype == at::kFloat || param_dtype == at::kBFloat16, "parameters are f32 or bf16");
  for (const auto& layout : layouts) begins_.push_back(begins_.back() + layout.shard(world));
  for (at::Tensor* arena : {&master_, &m_, &v_, &accumulator_}) *arena = at::zeros({total_elements()}, at::kFloat);
  if (param_dtype == at::kBFloat16) bf16_ = at::zeros({total_elements()}, at::kBFloat16);
}

std::span<float> ShardStore::slice(const at::Tensor& arena, std::size_t unit) const {
  return {arena.data_ptr<float>() + begins_[unit], static_cast<std::size_t>(elements(unit))};
}

std::span<float> ShardStore::state(StateKind kind, std::size_t unit) {
  return slice(kind == StateKind::master ? master_ : kind == StateKind::m ? m_ : v_, unit);
}

std::span<const float> ShardStore::state(StateKind kind, std::size_t unit) const {
  return slice(kind == StateKind::master ? master_ : kind == StateKind::m ? m_ : v_, unit);
}

std::span<float> ShardStore::accumulator(std::size_t unit) { return slice(accumulator_, unit); }

at::Tensor ShardStore::gather_source(std::size_t unit) const {
  return (bf16_.defined() ? bf16_ : master_).narrow(0, begins_[unit], elements(unit));
}

void ShardStore::refresh(std::size_t unit) {
  if (bf16_.defined()) gather_source(unit).copy_(master_.narrow(0, begins_[unit], elements(unit)));
}

std::int64_t ShardStore::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor* arena : {&master_, &m_, &v_, &accumulator_, &bf16_}) {
    if (arena->defined()) sum += static_cast<std::int64_t>(arena->nbytes());
  }
  return sum;
}

}  // namespace troupe

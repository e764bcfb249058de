#include "model/shard/shard_store.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace troupe {
namespace {

std::span<float> span_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

std::span<const StateKind> saved_kinds(bool trainable) {
  static constexpr StateKind kKinds[] = {StateKind::master, StateKind::m, StateKind::v};
  return std::span(kKinds).first(trainable ? 3 : 1);
}

ShardStore::ShardStore(std::span<const FlatLayout> layouts, const std::vector<bool>& trainable, int world,
                       at::ScalarType param_dtype) {
  TROUPE_CHECK(param_dtype == at::kFloat || param_dtype == at::kBFloat16, "parameters are f32 or bf16");
  TROUPE_CHECK(trainable.size() == layouts.size(), "every unit is trainable or not");
  std::int64_t with_state = 0, frozen = 0;
  for (std::size_t u = 0; u < layouts.size(); ++u) {
    auto& end = trainable[u] ? with_state : frozen;
    places_.push_back({end, layouts[u].shard(world), trainable[u]});
    end += places_.back().count;
  }
  for (at::Tensor* arena : {&master_, &m_, &v_, &accumulator_}) *arena = at::zeros({with_state}, at::kFloat);
  if (param_dtype == at::kBFloat16) bf16_ = at::zeros({with_state}, at::kBFloat16);
  frozen_ = at::zeros({frozen}, param_dtype);
}

std::int64_t ShardStore::saved_elements() const {
  std::int64_t sum = 0;
  for (const auto& place : places_) {
    sum += place.count * static_cast<std::int64_t>(saved_kinds(place.trainable).size());
  }
  return sum;
}

const at::Tensor& ShardStore::arena_of(StateKind kind) const {
  return kind == StateKind::master ? master_ : kind == StateKind::m ? m_ : v_;
}

at::Tensor ShardStore::slice(const at::Tensor& arena, std::size_t unit) const {
  return arena.narrow(0, places_[unit].begin, places_[unit].count);
}

std::span<float> ShardStore::state(StateKind kind, std::size_t unit) {
  TROUPE_CHECK(is_trainable(unit), "a frozen unit has no optimizer state");
  return span_of(slice(arena_of(kind), unit));
}

std::span<float> ShardStore::accumulator(std::size_t unit) {
  TROUPE_CHECK(is_trainable(unit), "a frozen unit has no gradient");
  return span_of(slice(accumulator_, unit));
}

void ShardStore::write(StateKind kind, std::size_t unit, std::span<const float> values) {
  const auto& place = places_[unit];
  TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == place.count, "a shard is written whole");
  TROUPE_CHECK(place.trainable || kind == StateKind::master, "a frozen unit has no moments");
  // from_blob takes a pointer to what it may not change
  const auto source = at::from_blob(const_cast<float*>(values.data()), {place.count}, at::kFloat);
  slice(place.trainable ? arena_of(kind) : frozen_, unit).copy_(source);
  if (place.trainable && kind == StateKind::master) refresh(unit);
}

void ShardStore::read(StateKind kind, std::size_t unit, std::span<float> out) const {
  const auto& place = places_[unit];
  TROUPE_CHECK(static_cast<std::int64_t>(out.size()) == place.count, "a shard is read whole");
  TROUPE_CHECK(place.trainable || kind == StateKind::master, "a frozen unit has no moments");
  at::from_blob(out.data(), {place.count}, at::kFloat).copy_(slice(place.trainable ? arena_of(kind) : frozen_, unit));
}

at::Tensor ShardStore::gather_source(std::size_t unit) const {
  if (!is_trainable(unit)) return slice(frozen_, unit);
  return slice(bf16_.defined() ? bf16_ : master_, unit);
}

void ShardStore::refresh(std::size_t unit) {
  if (bf16_.defined()) slice(bf16_, unit).copy_(slice(master_, unit));
}

std::int64_t ShardStore::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor* arena : {&master_, &m_, &v_, &accumulator_, &bf16_, &frozen_}) {
    if (arena->defined()) sum += static_cast<std::int64_t>(arena->nbytes());
  }
  return sum;
}

}  // namespace troupe

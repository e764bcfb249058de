#include "model/shard/shard_store.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "kernels/product.h"

namespace troupe::model {

std::span<const StateKind> saved_kinds(bool trainable) {
  static constexpr StateKind kKinds[] = {StateKind::master, StateKind::m, StateKind::v};
  return std::span(kKinds).first(trainable ? 3 : 1);
}

UnitKeep keep_of(const UnitSpec& unit) {
  if (unit.trainable) return UnitKeep::trained;
  return unit.average_of.empty() ? UnitKeep::frozen : UnitKeep::averaged;
}

ShardStore::ShardStore(std::span<const FlatLayout> layouts, std::span<const UnitKeep> keep, int world,
                       at::ScalarType param_dtype) {
  TROUPE_CHECK(param_dtype == at::kFloat || param_dtype == at::kBFloat16, "parameters are f32 or bf16");
  TROUPE_CHECK(keep.size() == layouts.size(), "every unit is kept in some way");
  std::int64_t ends[] = {0, 0, 0};
  for (std::size_t u = 0; u < layouts.size(); ++u) {
    auto& end = ends[static_cast<std::size_t>(keep[u])];
    places_.push_back({end, layouts[u].shard(world), keep[u]});
    end += places_.back().count;
  }
  const auto [trained, averaged, frozen] = ends;
  for (at::Tensor* arena : {&master_, &m_, &v_, &accumulator_}) *arena = at::zeros({trained}, at::kFloat);
  averaged_ = at::zeros({averaged}, at::kFloat);
  if (param_dtype == at::kBFloat16) {
    bf16_ = at::zeros({trained}, at::kBFloat16);
    averaged_bf16_ = at::zeros({averaged}, at::kBFloat16);
  }
  frozen_ = at::zeros({frozen}, param_dtype);
  for (std::size_t u = 0; u < places_.size(); ++u) {
    const bool copied = bf16_.defined() && keep[u] != UnitKeep::frozen;
    sources_.push_back(slice(copied ? copy_arena(u) : arena_of(StateKind::master, u), u));
  }
}

std::int64_t ShardStore::saved_elements() const {
  std::int64_t sum = 0;
  for (std::size_t u = 0; u < places_.size(); ++u) {
    if (places_[u].keep == UnitKeep::frozen) continue;
    sum += places_[u].count * static_cast<std::int64_t>(saved_kinds(is_trained(u)).size());
  }
  return sum;
}

const at::Tensor& ShardStore::arena_of(StateKind kind, std::size_t unit) const {
  switch (places_[unit].keep) {
    case UnitKeep::averaged:
      return averaged_;
    case UnitKeep::frozen:
      return frozen_;
    case UnitKeep::trained:
      break;
  }
  return kind == StateKind::master ? master_ : kind == StateKind::m ? m_ : v_;
}

const at::Tensor& ShardStore::copy_arena(std::size_t unit) const { return is_trained(unit) ? bf16_ : averaged_bf16_; }

void ShardStore::check_kind(StateKind kind, std::size_t unit) const {
  TROUPE_CHECK(is_trained(unit) || kind == StateKind::master, "only a trained unit has moments");
}

at::Tensor ShardStore::slice(const at::Tensor& arena, std::size_t unit) const {
  return arena.narrow(0, places_[unit].begin, places_[unit].count);
}

std::span<float> ShardStore::part(const at::Tensor& arena, std::size_t unit) const {
  return {arena.data_ptr<float>() + places_[unit].begin, static_cast<std::size_t>(places_[unit].count)};
}

std::span<float> ShardStore::state(StateKind kind, std::size_t unit) {
  TROUPE_CHECK(places_[unit].keep != UnitKeep::frozen, "a frozen unit has no optimizer state");
  check_kind(kind, unit);
  return part(arena_of(kind, unit), unit);
}

std::span<float> ShardStore::accumulator(std::size_t unit) {
  TROUPE_CHECK(is_trained(unit), "only a trained unit has a gradient");
  return part(accumulator_, unit);
}

at::Tensor ShardStore::accumulator_tensor(std::size_t unit) const {
  TROUPE_CHECK(is_trained(unit), "only a trained unit has a gradient");
  return slice(accumulator_, unit);
}

std::span<const float> ShardStore::values(std::size_t unit) const {
  return part(arena_of(StateKind::master, unit), unit);
}

void ShardStore::write(StateKind kind, std::size_t unit, std::span<const float> values) {
  const auto& place = places_[unit];
  TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == place.count, "a shard is written whole");
  check_kind(kind, unit);
  // from_blob takes a pointer to what it may not change
  const auto source = at::from_blob(const_cast<float*>(values.data()), {place.count}, at::kFloat);
  slice(arena_of(kind, unit), unit).copy_(source);
  if (kind == StateKind::master) refresh(unit);
}

void ShardStore::read(StateKind kind, std::size_t unit, std::span<float> out) const {
  const auto& place = places_[unit];
  TROUPE_CHECK(static_cast<std::int64_t>(out.size()) == place.count, "a shard is read whole");
  check_kind(kind, unit);
  at::from_blob(out.data(), {place.count}, at::kFloat).copy_(slice(arena_of(kind, unit), unit));
}

void ShardStore::refresh(std::size_t unit) {
  if (!bf16_.defined() || places_[unit].keep == UnitKeep::frozen) return;
  convert_out(slice(copy_arena(unit), unit), slice(arena_of(StateKind::master, unit), unit));
}

std::int64_t ShardStore::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor* arena : {&master_, &m_, &v_, &accumulator_, &bf16_, &averaged_, &averaged_bf16_, &frozen_}) {
    if (arena->defined()) sum += static_cast<std::int64_t>(arena->nbytes());
  }
  return sum;
}

}  // namespace troupe::model

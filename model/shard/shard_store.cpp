#include "model/shard/shard_store.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "kernels/product.h"

namespace troupe::model {

UnitKeep keep_of(const UnitSpec& unit) {
  if (unit.trainable) return UnitKeep::trained;
  return unit.average_of.empty() ? UnitKeep::frozen : UnitKeep::averaged;
}

ShardStore::ShardStore(const ArenaPlan& plan, const Arenas& arenas)
    : plan_(plan), arenas_(arenas), param_dtype_(plan.shape().param_bytes == 2 ? at::kBFloat16 : at::kFloat) {
  for (int u = 0; u < static_cast<int>(plan.shape().units.size()); ++u)
    sources_.push_back(arenas.tensor(plan.gathered(u), param_dtype_));
}

void ShardStore::check_width(StateKind kind, std::size_t unit, std::size_t bytes) const {
  TROUPE_CHECK(keep(unit) != UnitKeep::frozen, "a frozen unit has no optimizer state");
  const bool is_moment = kind == StateKind::m || kind == StateKind::v;
  TROUPE_CHECK(bytes == (is_moment && has_bf16_moments() ? 2u : 4u), "state is read as what it is kept in");
}

std::span<float> ShardStore::accumulator(std::size_t unit) const {
  return arenas_.floats(plan_.gradient(static_cast<int>(unit)));
}

at::Tensor ShardStore::kind_tensor(StateKind kind, std::size_t unit) const {
  const bool is_moment = kind == StateKind::m || kind == StateKind::v;
  const auto of_trained = is_moment && has_bf16_moments() ? at::kBFloat16 : at::kFloat;
  return arenas_.tensor(plan_.state(kind, static_cast<int>(unit)),
                        keep(unit) == UnitKeep::frozen ? param_dtype_ : of_trained);
}

void ShardStore::write(StateKind kind, std::size_t unit, std::span<const float> values) {
  TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == elements(unit), "a shard is written whole");
  // from_blob takes a pointer to what it may not change
  const auto source = at::from_blob(const_cast<float*>(values.data()), {elements(unit)}, at::kFloat);
  kind_tensor(kind, unit).copy_(source);
  if (kind == StateKind::master && keep(unit) != UnitKeep::frozen) refresh(unit, state(kind, unit));
}

void ShardStore::read(StateKind kind, std::size_t unit, std::span<float> out) const {
  TROUPE_CHECK(static_cast<std::int64_t>(out.size()) == elements(unit), "a shard is read whole");
  at::from_blob(out.data(), {elements(unit)}, at::kFloat).copy_(kind_tensor(kind, unit));
}

void ShardStore::refresh(std::size_t unit, std::span<float> master) {
  if (param_dtype_ == at::kFloat) return;
  convert_out(sources_[unit], at::from_blob(master.data(), {elements(unit)}, at::kFloat));
}

}  // namespace troupe::model

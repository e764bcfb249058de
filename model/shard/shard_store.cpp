#include "model/shard/shard_store.h"

#include <ATen/ATen.h>

#include "base/check.h"

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

at::ScalarType ShardStore::dtype_of(StateKind kind, std::size_t unit) const {
  if (keep(unit) == UnitKeep::frozen) return param_dtype_;
  const bool is_moment = kind == StateKind::m || kind == StateKind::v;
  return is_moment && has_bf16_moments() ? at::kBFloat16 : at::kFloat;
}

std::span<simd::Bf16> ShardStore::bf16_copy(std::size_t unit) const {
  if (param_dtype_ == at::kFloat || keep(unit) == UnitKeep::frozen) return {};
  const auto bytes = arenas_.bytes(plan_.gathered(static_cast<int>(unit)));
  return {reinterpret_cast<simd::Bf16*>(bytes.data()), bytes.size() / sizeof(simd::Bf16)};
}

void ShardStore::write(StateKind kind, std::size_t unit, std::span<const float> values, ShardKernels& kernels,
                       device::Stream& stream) {
  TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == elements(unit), "a shard is written whole");
  // from_blob takes a pointer to what it may not change
  const auto source = at::from_blob(const_cast<float*>(values.data()), {elements(unit)}, at::kFloat);
  const auto rounded = source.to(dtype_of(kind, unit));
  const std::span from(static_cast<const std::byte*>(rounded.const_data_ptr()), rounded.nbytes());
  // nothing of it can fail
  kernels.copy(arenas_.bytes(plan_.state(kind, static_cast<int>(unit))), from, stream).value();
  if (kind == StateKind::master && keep(unit) != UnitKeep::frozen)
    refresh(unit, state(kind, unit), kernels, stream).value();
}

void ShardStore::read(StateKind kind, std::size_t unit, std::span<float> out, ShardKernels& kernels,
                      device::Stream& stream) const {
  TROUPE_CHECK(static_cast<std::int64_t>(out.size()) == elements(unit), "a shard is read whole");
  const auto values = at::empty({elements(unit)}, dtype_of(kind, unit));
  const std::span to(static_cast<std::byte*>(values.data_ptr()), values.nbytes());
  kernels.copy(to, arenas_.bytes(plan_.state(kind, static_cast<int>(unit))), stream).value();  // a copy cannot fail
  at::from_blob(out.data(), {elements(unit)}, at::kFloat).copy_(values);
}

Result<void> ShardStore::refresh(std::size_t unit, std::span<const float> master, ShardKernels& kernels,
                                 device::Stream& stream) const {
  const auto copy = bf16_copy(unit);
  return copy.empty() ? Result<void>() : kernels.round(copy, master, stream);
}

}  // namespace troupe::model

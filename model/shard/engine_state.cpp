// Where an engine's values come from and where they go.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "model/shard/engine.h"
#include "model/shard/init.h"

namespace troupe::model {

void Engine::start_from(std::int64_t updates) {
  updates_ = updates;
  has_state_ = true;
  params_->clear();
  if (replicated_) replicated_->mark_stale();
  discard();
}

void Engine::initialise(std::uint64_t seed) {
  TROUPE_CHECK(store_ != nullptr, "attach() comes before initialise()");
  std::vector<float> values;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    values.resize(static_cast<std::size_t>(store_->elements(u)));
    fill_initial(units_[u], layouts_[u], seed, rank_ * store_->elements(u), values);
    for (const auto kind : saved_kinds(units_[u].trainable)) {
      if (kind != StateKind::master) std::fill(values.begin(), values.end(), 0.0f);
      store_->write(kind, u, values);
    }
  }
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (source_of_[u]) store_->write(StateKind::master, u, store_->state(StateKind::master, *source_of_[u]));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) groups_.set_updates(g, 0);
  start_from(0);
}

Result<void> Engine::load(const StateSource& source) {
  TROUPE_CHECK(store_ != nullptr, "attach() comes before load()");
  has_state_ = false;
  std::vector<float> values;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const std::int64_t begin = rank_ * store_->elements(u);
    const std::int64_t count = std::clamp<std::int64_t>(layouts_[u].numel - begin, 0, store_->elements(u));
    values.resize(static_cast<std::size_t>(store_->elements(u)));
    for (const auto kind : saved_kinds(units_[u].trainable)) {
      if (count > 0) TROUPE_TRY(source.read(u, kind, begin, count, values.data()));
      std::fill(values.begin() + count, values.end(), 0.0f);
      store_->write(kind, u, values);
    }
  }
  const auto by_group = source.group_updates();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto known = by_group.find(groups_.names()[g]);
    groups_.set_updates(g, known == by_group.end() ? source.updates() : known->second);
  }
  start_from(source.updates());
  return {};
}

std::map<std::string, std::int64_t> Engine::group_updates() const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t g = 0; g < groups_.size(); ++g) counts[groups_.names()[g]] = groups_.updates(g);
  return counts;
}

std::size_t Engine::snapshot_bytes() const {
  return store_ ? static_cast<std::size_t>(store_->saved_elements()) * sizeof(float) : 0;
}

void Engine::snapshot(std::span<std::byte> out) const {
  TROUPE_CHECK(has_state_ && out.size() == snapshot_bytes(), "a snapshot goes into exactly snapshot_bytes()");
  TROUPE_CHECK(reinterpret_cast<std::uintptr_t>(out.data()) % alignof(float) == 0, "a snapshot's memory is aligned");
  auto* at = reinterpret_cast<float*>(out.data());
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (keep_of(units_[u]) == UnitKeep::frozen) continue;
    const auto count = static_cast<std::size_t>(store_->elements(u));
    for (const auto kind : saved_kinds(units_[u].trainable)) {
      store_->read(kind, u, {at, count});
      at += count;
    }
  }
}

const at::Tensor& Engine::frozen_shard(std::size_t unit) const {
  TROUPE_CHECK(has_state_ && keep_of(units_[unit]) == UnitKeep::frozen, "only a frozen unit is handed out as it lies");
  return store_->gather_source(unit);
}

std::vector<std::span<const float>> Engine::published(const std::vector<std::string>& names) const {
  TROUPE_CHECK(has_state_, "there is a state to publish");
  std::vector<std::span<const float>> shards;
  for (const auto& name : names) shards.push_back(store_->values(unit_index(name)));
  return shards;
}

Result<std::map<std::string, ParamView>> Engine::gather_views(const std::vector<std::string>& names) {
  TROUPE_TRY(check_ready("gather_views"));
  std::map<std::string, ParamView> views;
  for (const auto& name : names) {
    const std::size_t unit = unit_index(name);
    const at::Tensor shard = at::empty({store_->elements(unit)}, at::kFloat);
    store_->read(StateKind::master, unit, {shard.data_ptr<float>(), static_cast<std::size_t>(shard.numel())});
    const at::Tensor full = at::empty({layouts_[unit].padded(world_)}, at::kFloat);
    const auto arrived =
        collective_.load()
            ->all_gather({full.data_ptr(), full.numel(), DType::f32}, {shard.data_ptr(), shard.numel(), DType::f32})
            ->wait();
    if (!arrived) return give_up(arrived.error().with("gather_views"));
    views[name] = views_of(layouts_[unit], full, /*leaves=*/false);
  }
  return views;
}

}  // namespace troupe::model

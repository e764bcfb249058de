// Where an engine's values come from and where they go.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "model/shard/engine.h"
#include "model/shard/init.h"
#include "model/shard/step_executor.h"

namespace troupe::model {

void Engine::start_from(std::int64_t updates) {
  core_.updates = updates;
  core_.counts = {};
  has_state_ = true;
  core_.step = StepState::empty(core_.memory->plan.shape());
  discard();
}

void Engine::write(StateKind kind, std::size_t unit, std::span<const float> values) {
  executor_->run_alone(
      [&](device::Stream& stream) { core_.memory->store.write(kind, unit, values, *core_.kernels, stream); });
}

void Engine::initialise(std::uint64_t seed) {
  TROUPE_CHECK(executor_ != nullptr, "attach() comes before initialise()");
  std::vector<float> values;
  for (std::size_t u = 0; u < core_.units.size(); ++u) {
    values.resize(static_cast<std::size_t>(core_.memory->store.elements(u)));
    fill_initial(core_.units[u], core_.layouts[u], seed, core_.rank * core_.memory->store.elements(u), values);
    const std::vector<float> zeros(values.size(), 0.0f);
    for (const auto kind : core_.memory->store.kinds(u)) {
      const bool is_moment = kind == StateKind::m || kind == StateKind::v;
      write(kind, u, is_moment ? zeros : values);
    }
  }
  ShardStore& store = core_.memory->store;
  executor_->run_alone([&](device::Stream& stream) {
    for (std::size_t u = 0; u < core_.units.size(); ++u) {
      if (!core_.source_of[u]) continue;
      store.write(StateKind::master, u, store.state(StateKind::master, *core_.source_of[u]), *core_.kernels, stream);
    }
  });
  for (std::size_t g = 0; g < core_.groups.size(); ++g) core_.groups.set_updates(g, 0);
  start_from(0);
}

Result<void> Engine::load(const StateSource& source) {
  TROUPE_CHECK(executor_ != nullptr, "attach() comes before load()");
  has_state_ = false;
  std::vector<float> values;
  for (std::size_t u = 0; u < core_.units.size(); ++u) {
    const std::int64_t begin = core_.rank * core_.memory->store.elements(u);
    const std::int64_t count =
        std::clamp<std::int64_t>(core_.layouts[u].numel - begin, 0, core_.memory->store.elements(u));
    values.resize(static_cast<std::size_t>(core_.memory->store.elements(u)));
    for (const auto kind : core_.memory->store.kinds(u)) {
      if (count > 0) TROUPE_TRY(source.read(u, kind, begin, count, values.data()));
      std::fill(values.begin() + count, values.end(), 0.0f);
      write(kind, u, values);
    }
  }
  const auto by_group = source.group_updates();
  for (std::size_t g = 0; g < core_.groups.size(); ++g) {
    const auto known = by_group.find(core_.groups.names()[g]);
    core_.groups.set_updates(g, known == by_group.end() ? source.updates() : known->second);
  }
  start_from(source.updates());
  return {};
}

std::map<std::string, std::int64_t> Engine::group_updates() const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t g = 0; g < core_.groups.size(); ++g) counts[core_.groups.names()[g]] = core_.groups.updates(g);
  return counts;
}

std::size_t Engine::snapshot_bytes() const {
  return core_.memory ? static_cast<std::size_t>(core_.memory->plan.bytes(ArenaKind::snapshot)) : 0;
}

void Engine::snapshot(std::span<std::byte> out) {
  TROUPE_CHECK(executor_ != nullptr && has_state_, "there is a group and a state to save");
  TROUPE_CHECK(out.size() == snapshot_bytes(), "a snapshot goes into exactly snapshot_bytes()");
  run_postponed();
  StepBuilder builder(core_.memory->plan, core_.step);
  builder.snapshot();
  StepCall call{.snapshot = out};
  executor_->run(builder.operations(), call).value();  // nothing in it can fail
}

at::Tensor Engine::frozen_shard(std::size_t unit) const {
  TROUPE_CHECK(has_state_ && keep_of(core_.units[unit]) == UnitKeep::frozen,
               "only a frozen unit is handed out as it lies");
  const at::Tensor& shard = core_.memory->store.gather_source(unit);
  if (device_.is_host()) return shard;
  const auto copy = at::empty(shard.sizes(), shard.scalar_type());
  executor_->run_alone([&](device::Stream& stream) {
    const std::span to(static_cast<std::byte*>(copy.data_ptr()), copy.nbytes());
    const std::span from(static_cast<const std::byte*>(shard.const_data_ptr()), shard.nbytes());
    core_.kernels->copy(to, from, stream).value();  // a copy cannot fail
  });
  return copy;
}

StateKind Engine::kept(StateKind kind, std::size_t unit) const {
  TROUPE_CHECK(kind == StateKind::master || (kind == StateKind::ema && core_.options.ema_decay > 0),
               "values are handed out, or averages that are kept");
  return keep_of(core_.units[unit]) == UnitKeep::trained ? kind : StateKind::master;
}

void Engine::publish(const std::vector<std::string>& names, StateKind kind, std::vector<std::vector<float>>& out) {
  TROUPE_CHECK(executor_ != nullptr && has_state_, "there is a group and a state to publish");
  std::vector<std::pair<std::size_t, StateKind>> what;
  StepCall call;
  out.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t unit = unit_index(names[i]);
    TROUPE_CHECK(keep_of(core_.units[unit]) != UnitKeep::frozen || core_.options.param_dtype == at::kFloat,
                 "values in f32 are published");
    what.emplace_back(unit, kept(kind, unit));
    out[i].resize(static_cast<std::size_t>(core_.memory->store.elements(unit)));
    call.published[static_cast<int>(unit)] = std::as_writable_bytes(std::span(out[i]));
  }
  run_postponed();
  StepBuilder builder(core_.memory->plan, core_.step);
  builder.publish(what);
  executor_->run(builder.operations(), call).value();  // nothing in it can fail
}

Result<std::map<std::string, ParamView>> Engine::gather_views(const std::vector<std::string>& names, StateKind kind) {
  TROUPE_TRY(check_ready("gather_views"));
  run_postponed();
  std::map<std::string, ParamView> views;
  for (const auto& name : names) {
    const std::size_t unit = unit_index(name);
    const at::Tensor shard = at::empty({core_.memory->store.elements(unit)}, at::kFloat);
    const std::span<float> to(shard.data_ptr<float>(), static_cast<std::size_t>(shard.numel()));
    executor_->run_alone(
        [&](device::Stream& stream) { core_.memory->store.read(kept(kind, unit), unit, to, *core_.kernels, stream); });
    const at::Tensor full = at::empty({core_.layouts[unit].padded(core_.world)}, at::kFloat);
    const auto arrived = (shard_group_ ? *shard_group_ : *collective_.load())
                             .all_gather({static_cast<std::byte*>(full.data_ptr()), full.nbytes()},
                                         {static_cast<const std::byte*>(shard.data_ptr()), shard.nbytes()});
    if (!arrived) return give_up(arrived.error().with("gather_views"));
    views[name] = views_of(core_.layouts[unit], full, /*leaves=*/false);
  }
  return views;
}

}  // namespace troupe::model

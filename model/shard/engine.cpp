#include "model/shard/engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/shard/executor.h"

namespace troupe::model {
namespace {

/// The first line: LibTorch appends its call stack.
Error network_error(const std::exception& e) {
  const std::string what = e.what();
  return {Errc::internal, fmt::format("the network failed: {}", what.substr(0, what.find('\n')))};
}

std::vector<FlatLayout> layouts_of(const std::vector<UnitSpec>& units) {
  std::vector<FlatLayout> layouts;
  for (const auto& unit : units) layouts.push_back(make_flat_layout(unit.params));
  return layouts;
}

/// Of each target network, the unit that it follows.
std::vector<std::optional<std::size_t>> find_sources(const std::vector<UnitSpec>& units) {
  const auto same_shape = [](const ParamSpec& a, const ParamSpec& b) { return a.shape == b.shape; };
  std::vector<std::optional<std::size_t>> sources(units.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (keep_of(units[u]) != UnitKeep::averaged) continue;
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const auto& unit) { return unit.name == units[u].average_of; });
    TROUPE_CHECK(found != units.end() && found->trainable &&
                     std::equal(found->params.begin(), found->params.end(), units[u].params.begin(),
                                units[u].params.end(), same_shape),
                 fmt::format("target network '{}' follows '{}', which is no trained unit of the same shapes",
                             units[u].name, units[u].average_of));
    sources[u] = static_cast<std::size_t>(found - units.begin());
  }
  return sources;
}

}  // namespace

Engine::Engine(std::shared_ptr<const Network> network, EngineOptions options)
    : network_(std::move(network)),
      options_(std::move(options)),
      units_(state_units(network_->units())),
      layouts_(layouts_of(units_)),
      layout_hash_(hash_of(layouts_)),
      groups_(units_, {.adamw = options_.adamw, .clip_grad_norm = options_.clip_grad_norm}, options_.groups),
      source_of_(find_sources(units_)),
      accumulated_(units_.size(), false) {
  TROUPE_CHECK(network_->units().size() >= 2, "a network has a prologue and an epilogue");
  TROUPE_CHECK(options_.param_slots >= 1 && options_.grad_slots >= 1, "at least one slot of each kind");
  // a slot beyond the last unit would never be used
  options_.param_slots = std::min(options_.param_slots, static_cast<int>(network_->units().size()));
}

Engine::~Engine() = default;

void Engine::attach(Collective& collective) {
  if (!store_ || collective.rank() != rank_ || collective.world() != world_) {
    rank_ = collective.rank();
    world_ = collective.world();
    has_state_ = false;
    allocate();
  }
  params_->clear();
  if (replicated_) replicated_->mark_stale();
  discard();
  collective_ = &collective;
}

void Engine::allocate() {
  const auto& chain = network_->units();
  const std::span all(layouts_);
  std::vector<UnitKeep> keep;
  std::vector<FlatLayout> with_gradients;  // what gradient slots must hold
  for (std::size_t u = 0; u < units_.size(); ++u) {
    keep.push_back(keep_of(units_[u]));
    if (u < chain.size() && units_[u].trainable) with_gradients.push_back(layouts_[u]);
  }
  store_ = std::make_unique<ShardStore>(layouts_, keep, world_, options_.param_dtype);
  params_ = std::make_unique<SlotPool>(
      options_.param_slots, is_alone() ? 0 : slot_elements(all.first(chain.size()), world_), options_.param_dtype);
  gradients_ = std::make_unique<SlotPool>(options_.grad_slots, slot_elements(with_gradients, world_), at::kFloat);
  if (units_.size() > chain.size()) {
    replicated_ = std::make_unique<ReplicatedParameters>(chain, layouts_.back(), rank_, world_, options_.param_dtype);
  }
  intervals_.clear();
  for (const FlatLayout& layout : layouts_)
    intervals_.push_back(update_intervals(layout, layout.padded(world_), options_.update_rules));
  make_views();
}

void Engine::make_views() {
  const auto& chain = network_->units();
  views_.clear();
  for (std::size_t u = 0; u < chain.size(); ++u) {
    const auto& values =
        is_alone() ? store_->gather_source(u) : params_->buffer(static_cast<int>(u) % options_.param_slots);
    auto& view = views_.emplace_back(views_of(layouts_[u], values, /*leaves=*/chain[u].trainable));
    if (replicated_) replicated_->add_parameters(u, view);
    view.set_adapter_scale(chain[u].adapter_scale);
  }
  manual_gradients_.clear();
  gradient_views_.assign(chain.size() * static_cast<std::size_t>(options_.grad_slots + 2), std::nullopt);
}

const ParamView& Engine::gradient_view(std::size_t unit, int place) {
  auto& view =
      gradient_views_[unit * static_cast<std::size_t>(options_.grad_slots + 2) + static_cast<std::size_t>(place + 1)];
  if (!view) {
    view.emplace();
    if (replicated_) replicated_->add_gradients(unit, *view);
    if (place >= 0) add_views(*view, layouts_[unit].entries, gradient_buffer(unit, place), /*leaves=*/false);
  }
  return *view;
}

const std::vector<ParamView>& Engine::manual_gradients(const ObjectivePlan& plan, bool without_slots) {
  auto& views = manual_gradients_[{&plan, without_slots}];
  if (!views.empty()) return views;
  int next = 0;
  for (std::size_t u = 0; u < chain_length(); ++u)
    views.push_back(gradient_view(u, !plan.trains()[u] ? -1 : without_slots ? in_place() : next++));
  return views;
}

ObjectivePlan& Engine::plan_of(const Network* objective) {
  const Network& wanted = objective ? *objective : *network_;
  for (const auto& plan : plans_) {
    if (&plan->network() == &wanted) return *plan;
  }
  return *plans_.emplace_back(
      std::make_unique<ObjectivePlan>(network_->units(), wanted, options_.param_slots, options_.grad_slots));
}

Result<void> Engine::check_ready(const char* what) const {
  if (!collective_.load())
    return Error{Errc::failed_precondition, fmt::format("{} without a group: attach one first", what)};
  if (!has_state_)
    return Error{Errc::failed_precondition, fmt::format("{} without state: initialise or load first", what)};
  return {};
}

Error Engine::give_up(Error error) {
  // peers that wait for this rank need not wait for their deadline
  if (auto* group = collective_.exchange(nullptr)) group->abort(error.message());
  params_->clear();
  discard();
  return error;
}

Result<void> Engine::run(const std::function<Result<void>(Executor&)>& work) {
  Executor executor(*this, *collective_.load());
  Result<void> result;
  try {
    result = work(executor);
  } catch (const std::exception& e) {
    result = network_error(e);
  }
  // the group is aborted before the executor waits for what is under way, so that it need not wait for peers
  if (!result) return give_up(result.error());
  return result;
}

Result<MicroResult> Engine::accumulate(const Batch& batch, double weight, bool first, const Network* objective) {
  TROUPE_TRY(check_ready("accumulate"));
  if (!first && !has_gradients_)
    return Error{Errc::failed_precondition, "accumulate: the first micro-batch of a step must say so"};
  if (first) discard();
  ObjectivePlan& plan = plan_of(objective);
  MicroResult result;
  const auto differentiate = [&](Executor& executor) -> Result<void> {
    if (const auto* form = plan.manual_backward(options_.explicit_backward && options_.param_dtype == at::kFloat)) {
      TROUPE_ASSIGN(result, executor.run(*form, plan, batch, weight));
      return {};
    }
    UnitTape tape(plan.network(), batch, weight, options_.recompute ? TapeMode::recompute : TapeMode::keep,
                  &unit_memory_);
    TROUPE_TRY(executor.run(plan.schedule(ScheduleMode::train, params_->held()), tape, ScheduleMode::train));
    result = tape.result();
    return {};
  };
  TROUPE_TRY(run(differentiate));
  has_gradients_ = true;
  saw_non_finite_loss_ = saw_non_finite_loss_ || !std::isfinite(result.loss);
  return result;
}

Result<Outputs> Engine::forward(const Batch& batch, const Network* objective) {
  TROUPE_TRY(check_ready("forward"));
  ObjectivePlan& plan = plan_of(objective);
  UnitTape tape(plan.network(), batch, 0, TapeMode::forward_only, &unit_memory_);
  TROUPE_TRY(run([&](Executor& executor) {
    return executor.run(plan.schedule(ScheduleMode::forward_only, params_->held()), tape, ScheduleMode::forward_only);
  }));
  return tape.outputs();
}

std::size_t Engine::unit_index(std::string_view name) const {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].name == name) return u;
  }
  TROUPE_CHECK(false, fmt::format("no unit is called '{}'", name));
}

std::map<std::string, std::int64_t> Engine::bytes() const {
  if (!store_) return {{"shards", 0}, {"slots", 0}, {"gradients", 0}};
  return {{"shards", store_->bytes()},
          {"slots", params_->bytes() + (replicated_ ? replicated_->parameter_bytes() : 0)},
          {"gradients", gradients_->bytes() + (replicated_ ? replicated_->gradient_bytes() : 0)}};
}

void Engine::abort(const std::string& why) {
  if (auto* group = collective_.load()) group->abort(why);
}

}  // namespace troupe::model

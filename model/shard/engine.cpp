#include "model/shard/engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/shard/executor.h"
#include "model/shard/init.h"

namespace troupe {
namespace {

/// The first line: LibTorch appends its call stack.
Error network_error(const std::exception& e) {
  const std::string what = e.what();
  return {Errc::internal, fmt::format("the network failed: {}", what.substr(0, what.find('\n')))};
}

}  // namespace

Engine::Engine(std::shared_ptr<const Network> network, EngineOptions options)
    : network_(std::move(network)), options_(options) {
  TROUPE_CHECK(network_->units().size() >= 2, "a network has a prologue and an epilogue");
  TROUPE_CHECK(options_.param_slots >= 1 && options_.grad_slots >= 1, "at least one slot of each kind");
  // a slot beyond the last unit would never be used
  options_.param_slots = std::min(options_.param_slots, static_cast<int>(network_->units().size()));
  units_ = state_units(network_->units());
  for (const auto& unit : units_) layouts_.push_back(make_flat_layout(unit.params));
  layout_hash_ = hash_of(layouts_);
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
  if (resident_) resident_->mark_stale();
  discard();
  collective_ = &collective;
}

void Engine::allocate() {
  const auto& chain = network_->units();
  const std::span all(layouts_);
  std::vector<bool> trainable;
  std::vector<FlatLayout> with_gradients;  // what gradient slots must hold
  for (std::size_t u = 0; u < units_.size(); ++u) {
    trainable.push_back(units_[u].trainable);
    if (u < chain.size() && units_[u].trainable) with_gradients.push_back(layouts_[u]);
  }
  store_ = std::make_unique<ShardStore>(layouts_, trainable, world_, options_.param_dtype);
  params_ = std::make_unique<SlotPool>(options_.param_slots, slot_elements(all.first(chain.size()), world_),
                                       options_.param_dtype);
  gradients_ = std::make_unique<SlotPool>(options_.grad_slots, slot_elements(with_gradients, world_), at::kFloat);
  if (units_.size() > chain.size()) {
    resident_ = std::make_unique<ResidentGroup>(chain, layouts_.back(), rank_, world_, options_.param_dtype);
  }
  views_.clear();
  for (std::size_t u = 0; u < chain.size(); ++u) {
    const auto& slot = params_->buffer(static_cast<int>(u) % options_.param_slots);
    auto& view = views_.emplace_back(views_of(layouts_[u], slot, /*leaves=*/chain[u].trainable));
    if (resident_) resident_->add_parameters(u, view);
    view.set_adapter_scale(chain[u].adapter_scale);
  }
}

bool Engine::any_unit_in_slots_changes() const {
  const auto& chain = network_->units();
  return std::any_of(chain.begin(), chain.end(), [](const UnitSpec& unit) { return unit.trainable; });
}

void Engine::start_from(std::int64_t updates) {
  updates_ = updates;
  has_state_ = true;
  params_->clear();
  if (resident_) resident_->mark_stale();
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
  start_from(source.updates());
  return {};
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

Result<void> Engine::run(UnitTape& tape, ScheduleMode mode, bool first) {
  ScheduleSpec spec{.num_units = static_cast<int>(chain_length()),
                    .param_slots = params_->size(),
                    .grad_slots = gradients_->size(),
                    .micro_batches = 1,
                    .mode = mode,
                    .held = params_->held(),
                    .trainable = {}};
  for (const auto& unit : network_->units()) spec.trainable.push_back(unit.trainable);
  Collective& group = *collective_.load();
  Executor executor(*this, group, tape, mode, first);
  Result<void> result;
  try {
    result = executor.run(make_schedule(spec));
  } catch (const std::exception& e) {
    result = network_error(e);
  }
  // the group is aborted before the executor waits for what is under way, so that it need not wait for peers
  if (!result) return give_up(result.error());
  return result;
}

Result<MicroResult> Engine::accumulate(const Batch& batch, double weight, bool first) {
  TROUPE_TRY(check_ready("accumulate"));
  if (!first && !has_gradients_)
    return Error{Errc::failed_precondition, "accumulate: the first micro-batch of a step must say so"};
  if (first) discard();
  UnitTape tape(*network_, batch, weight, options_.recompute ? TapeMode::recompute : TapeMode::keep);
  TROUPE_TRY(run(tape, ScheduleMode::train, first));
  has_gradients_ = true;
  try {
    auto result = tape.result();
    saw_non_finite_loss_ = saw_non_finite_loss_ || !std::isfinite(result.loss);
    return result;
  } catch (const std::exception& e) {
    return give_up(network_error(e));
  }
}

Result<Outputs> Engine::forward(const Batch& batch) {
  TROUPE_TRY(check_ready("forward"));
  UnitTape tape(*network_, batch, 0, TapeMode::forward_only);
  TROUPE_TRY(run(tape, ScheduleMode::forward_only, false));
  return tape.outputs();
}

Result<StepVote> Engine::vote(std::vector<double> sums, std::vector<double> maxima) {
  TROUPE_TRY(check_ready("vote"));
  if (!has_gradients_)
    return Error{Errc::failed_precondition, "vote: no micro-batch has been accumulated since the last step"};
  double squares = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].trainable) squares += sum_of_squares(store_->accumulator(u));
  }
  const double mine[] = {squares, saw_non_finite_loss_ ? 1.0 : 0.0};
  sums.insert(sums.begin(), std::begin(mine), std::end(mine));

  // a value is the same on all ranks when its maximum and the maximum of its negative say so; halves of 32 bits are
  // exact
  const double identity[] = {static_cast<double>(layout_hash_ >> 32), static_cast<double>(layout_hash_ & 0xFFFFFFFFu),
                             static_cast<double>(updates_)};
  const std::size_t num_identity = std::size(identity);
  std::vector<double> largest;
  for (const double value : identity) largest.push_back(value);
  for (const double value : identity) largest.push_back(-value);
  largest.insert(largest.end(), maxima.begin(), maxima.end());

  Collective& group = *collective_.load();
  if (auto done = group.all_reduce_sum({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}); !done) {
    return give_up(done.error().with("vote"));
  }
  if (auto done = group.all_reduce_max({largest.data(), static_cast<std::int64_t>(largest.size()), DType::f64});
      !done) {
    return give_up(done.error().with("vote"));
  }
  for (std::size_t i = 0; i < num_identity; ++i) {
    if (largest[i] == -largest[i + num_identity]) continue;
    const char* what = i == 2 ? "number of updates" : "layout of the network's units";
    return give_up(
        {Errc::failed_precondition, fmt::format("vote: ranks differ in the {}: {} here, {} to {} over the group", what,
                                                identity[i], -largest[i + num_identity], largest[i])});
  }
  StepVote vote;
  // double sums differ in their last bits with the number of ranks; as f32 they agree, and so does the clip factor
  vote.grad_norm = static_cast<double>(static_cast<float>(std::sqrt(sums[0])));
  vote.finite = std::isfinite(vote.grad_norm) && sums[1] == 0.0;
  vote.sums.assign(sums.begin() + 2, sums.end());
  vote.maxima.assign(largest.begin() + static_cast<std::ptrdiff_t>(2 * num_identity), largest.end());
  return vote;
}

void Engine::commit(double lr, const StepVote& vote) {
  TROUPE_CHECK(vote.finite, "a step with a gradient that is not finite is discarded");
  TROUPE_CHECK(has_gradients_, "a step has gradients");
  ++updates_;
  const float scale = clip_factor(vote.grad_norm, options_.clip_grad_norm);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (!units_[u].trainable) continue;
    adamw_step(store_->state(StateKind::master, u), store_->state(StateKind::m, u), store_->state(StateKind::v, u),
               store_->accumulator(u), scale, lr, updates_, options_.adamw);
    store_->refresh(u);
  }
  // frozen units stay in their slots: what they hold is still true
  if (any_unit_in_slots_changes()) params_->clear();
  if (resident_) resident_->mark_stale();
  discard();
}

void Engine::discard() {
  if (gradients_) gradients_->clear();
  has_gradients_ = false;
  saw_non_finite_loss_ = false;
}

std::size_t Engine::snapshot_bytes() const {
  return store_ ? static_cast<std::size_t>(store_->saved_elements()) * sizeof(float) : 0;
}

void Engine::snapshot(std::span<std::byte> out) const {
  TROUPE_CHECK(has_state_ && out.size() == snapshot_bytes(), "a snapshot goes into exactly snapshot_bytes()");
  TROUPE_CHECK(reinterpret_cast<std::uintptr_t>(out.data()) % alignof(float) == 0, "a snapshot's memory is aligned");
  auto* at = reinterpret_cast<float*>(out.data());
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const auto count = static_cast<std::size_t>(store_->elements(u));
    for (const auto kind : saved_kinds(units_[u].trainable)) {
      store_->read(kind, u, {at, count});
      at += count;
    }
  }
}

std::map<std::string, std::int64_t> Engine::bytes() const {
  if (!store_) return {{"shards", 0}, {"slots", 0}, {"gradients", 0}};
  return {{"shards", store_->bytes()},
          {"slots", params_->bytes() + (resident_ ? resident_->parameter_bytes() : 0)},
          {"gradients", gradients_->bytes() + (resident_ ? resident_->gradient_bytes() : 0)}};
}

void Engine::abort(const std::string& why) {
  if (auto* group = collective_.load()) group->abort(why);
}

}  // namespace troupe

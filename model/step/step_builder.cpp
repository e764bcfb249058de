#include "model/step/step_builder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe::model {
namespace {

constexpr int kNoSlot = -1;

Access read(const ArenaRange& range) { return {range, false}; }
Access write(const ArenaRange& range) { return {range, true}; }

/// The first marked unit from `from` on, -1 if there is none.
int first_of(const std::vector<bool>& units, int from) {
  const auto found = std::find(units.begin() + from, units.end(), true);
  return found == units.end() ? -1 : static_cast<int>(found - units.begin());
}

}  // namespace

StepState StepState::empty(const StepShape& shape) {
  return {.held = std::vector<int>(static_cast<std::size_t>(shape.param_slots), -1),
          .replicated_is_current = false,
          .accumulated = std::vector<bool>(shape.units.size(), false),
          .whole = std::vector<bool>(shape.units.size(), false),
          .postponed = std::vector<bool>(shape.units.size(), false)};
}

StepBuilder::StepBuilder(const ArenaPlan& plan, StepState state)
    : plan_(plan),
      state_(std::move(state)),
      state_slot_(plan.shape().units.size(), kNoSlot),
      stash_(static_cast<std::size_t>(plan.shape().stash_slots), kNoSlot) {}

void StepBuilder::emit(Op operation) {
  operation.work = work_of(operation);
  operations_.push_back(std::move(operation));
  order_.add(operations_);
}

Work StepBuilder::work_of(const Op& op) const {
  const bool updates =
      op.kind == OpKind::update || op.kind == OpKind::average || op.kind == OpKind::add || op.kind == OpKind::curvature;
  double touched = 0;
  for (const Access& access : op.accesses)
    touched += static_cast<double>(access.range.bytes) * (access.writes && updates ? 2 : 1);
  switch (op.kind) {
    case OpKind::forward:
    case OpKind::backward:
    case OpKind::network:
      return {};
    case OpKind::gather:
    case OpKind::replicate:
    case OpKind::exchange:
    case OpKind::reduce_scatter: {
      // of what becomes whole, or of what was found: all but this rank's own part
      const bool is_scattered = op.kind == OpKind::exchange || op.kind == OpKind::reduce_scatter;
      const ArenaRange& whole = is_scattered ? op.accesses.front().range : op.accesses.back().range;
      const double others = 1.0 - 1.0 / (op.kind == OpKind::replicate ? plan_.shape().replicas : plan_.shape().world);
      Work work;
      work.sent_bytes = others * static_cast<double>(whole.bytes);
      return work;
    }
    case OpKind::stash_out:
    case OpKind::stash_in:
    case OpKind::fetch:
    case OpKind::store: {
      Work work;
      work.offloaded_bytes = static_cast<double>(op.accesses.front().range.bytes);
      return work;
    }
    default: {
      Work work;
      work.moved_bytes = touched;
      return work;
    }
  }
}

void StepBuilder::take_input() {
  ++micro_;
  emit({.kind = OpKind::input, .stream = OpStream::copy, .micro = micro_, .accesses = {write(plan_.input(micro_))}});
}

void StepBuilder::gather(int unit) {
  catch_up(unit);
  int& held = state_.held[static_cast<std::size_t>(plan_.slot_of(unit))];
  if (is_alone() || held == unit) return;
  held = unit;
  emit_gather(unit);
}

void StepBuilder::emit_gather(int unit) {
  emit({.kind = OpKind::gather,
        .stream = OpStream::gather,
        .unit = unit,
        .micro = micro_,
        .accesses = {read(plan_.gathered(unit)), write(plan_.parameters(unit))}});
}

void StepBuilder::gather_replicated() {
  if (!has_replicated()) return;
  catch_up(plan_.shape().resident());
  if (is_alone() || state_.replicated_is_current) return;
  state_.replicated_is_current = true;
  emit_gather(plan_.shape().resident());
}

std::vector<Access> StepBuilder::unit_reads(int unit) const {
  std::vector<Access> reads = {read(plan_.parameters(unit)), read(plan_.input(micro_))};
  if (unit > 0) reads.push_back(read(plan_.activation(unit - 1)));
  if (plan_.shape().units[static_cast<std::size_t>(unit)].has_replicated)
    reads.push_back(read(plan_.parameters(plan_.shape().resident())));
  return reads;
}

void StepBuilder::stash_out(int unit) {
  const int slots = plan_.shape().stash_slots;
  if (!plan_.is_stashed(unit)) return;
  stash_[static_cast<std::size_t>(unit % slots)] = unit;
  // the last ones stay until their backward
  if (!plan_.is_stashed(unit + slots)) return;
  emit({.kind = OpKind::stash_out,
        .stream = OpStream::offload,
        .unit = unit,
        .micro = micro_,
        .accesses = {read(plan_.activation(unit)), write(plan_.stashed(unit))}});
}

void StepBuilder::stash_in(int unit) {
  if (!plan_.is_stashed(unit)) return;
  int& there = stash_[static_cast<std::size_t>(unit % plan_.shape().stash_slots)];
  if (there == unit) return;
  there = unit;
  emit({.kind = OpKind::stash_in,
        .stream = OpStream::offload,
        .unit = unit,
        .micro = micro_,
        .accesses = {read(plan_.stashed(unit)), write(plan_.activation(unit))}});
}

void StepBuilder::forward_pass(bool has_backward) {
  const int ahead = plan_.shape().param_slots;
  for (int u = 0; u < chain(); ++u) {
    for (int next = u; next < std::min(u + ahead, chain()); ++next) gather(next);
    auto accesses = unit_reads(u);
    accesses.push_back(write(plan_.activation(u)));
    if (has_backward && u + 1 == chain()) accesses.push_back(write(plan_.losses()));
    emit({.kind = OpKind::forward, .unit = u, .micro = micro_, .accesses = std::move(accesses)});
    if (has_backward) stash_out(u);
  }
}

bool StepBuilder::replicated_in_place() const {
  return has_replicated() && is_alone() && !is_accumulated(plan_.shape().resident());
}

void StepBuilder::backward(int unit, bool trains, int grad_slot, bool with_replicated_in_place) {
  Op op{.kind = OpKind::backward, .unit = unit, .micro = micro_, .accesses = unit_reads(unit)};
  op.accesses.push_back(write(plan_.activation(unit)));
  op.accesses.push_back(write(plan_.carry_gradients()));
  if (plan_.shape().units[static_cast<std::size_t>(unit)].has_replicated) {
    op.replicated_in_place = with_replicated_in_place;
    op.accesses.push_back(
        write(with_replicated_in_place ? plan_.gradient(plan_.shape().resident()) : plan_.replicated_gradients()));
  }
  if (!trains) return emit(std::move(op));
  op.in_place = is_alone() && !is_accumulated(unit);
  op.is_whole = plan_.shape().adds_up_whole() && !state_.whole[static_cast<std::size_t>(unit)];
  if (!op.in_place && !op.is_whole) op.grad_slot = grad_slot;
  op.accesses.push_back(write(op.in_place   ? plan_.gradient(unit)
                              : op.is_whole ? plan_.whole_gradient(unit)
                                            : plan_.gradient_slot(grad_slot, unit)));
  const bool in_place = op.in_place, is_whole = op.is_whole;
  emit(std::move(op));
  if (plan_.shape().adds_up_whole()) return add_up(unit, grad_slot, is_whole);
  if (in_place) return mark_accumulated(unit);
  reduce(unit, plan_.gradient_slot(grad_slot, unit), grad_slot);
}

void StepBuilder::add_up(int unit, int grad_slot, bool is_first) {
  state_.whole[static_cast<std::size_t>(unit)] = true;
  if (is_first) return;
  emit({.kind = OpKind::add,
        .unit = unit,
        .micro = micro_,
        .grad_slot = grad_slot,
        .accesses = {read(plan_.gradient_slot(grad_slot, unit)), write(plan_.whole_gradient(unit))}});
}

void StepBuilder::backward_pass(const std::vector<bool>& trains) {
  const bool in_place = replicated_in_place();
  int grad_slot = 0;
  for (int u = chain() - 1; u >= 0; --u) {
    for (int next = u; next > std::max(u - plan_.shape().param_slots, -1); --next) gather(next);
    for (int next = u; next > u - plan_.shape().stash_slots; --next) stash_in(next);
    const bool is_trained = trains[static_cast<std::size_t>(u)];
    backward(u, is_trained, grad_slot, in_place);
    if (is_trained) grad_slot = (grad_slot + 1) % plan_.shape().grad_slots;
  }
  if (!has_replicated()) return;
  if (in_place) return mark_accumulated(plan_.shape().resident());
  reduce(plan_.shape().resident(), plan_.replicated_gradients(), kNoSlot);
}

void StepBuilder::reduce(int unit, const ArenaRange& gradient, int grad_slot) {
  const bool is_sum = is_accumulated(unit);
  mark_accumulated(unit);
  Op sum{.kind = OpKind::sum,
         .stream = is_alone() ? OpStream::compute : OpStream::reduce,
         .unit = unit,
         .micro = micro_,
         .grad_slot = grad_slot,
         .parts = plan_.shape().reduce_scatters ? 1 : plan_.shape().world,
         .adds = is_sum};
  if (!is_alone()) {
    emit({.kind = plan_.shape().reduce_scatters ? OpKind::reduce_scatter : OpKind::exchange,
          .stream = OpStream::reduce,
          .unit = unit,
          .micro = micro_,
          .grad_slot = grad_slot,
          .accesses = {read(gradient), write(plan_.staging(unit))}});
    sum.accesses.push_back(read(plan_.staging(unit)));
  } else {
    sum.accesses.push_back(read(gradient));
  }
  sum.accesses.push_back(write(plan_.gradient(unit)));
  emit(std::move(sum));
}

void StepBuilder::sum_over_replicas(int unit) {
  emit({.kind = OpKind::replicate,
        .stream = OpStream::reduce,
        .unit = unit,
        .accesses = {read(plan_.gradient(unit)), write(plan_.replica_staging(unit))}});
  emit({.kind = OpKind::sum,
        .stream = OpStream::reduce,
        .unit = unit,
        .parts = plan_.shape().replicas,
        .accesses = {read(plan_.replica_staging(unit)), write(plan_.gradient(unit))}});
}

void StepBuilder::manual(const std::vector<bool>& trains) {
  TROUPE_CHECK(!plan_.shape().adds_up_whole(), "a manual backward has slots for all gradients");
  const auto is_trained = [&](int u) { return static_cast<bool>(trains[static_cast<std::size_t>(u)]); };
  Op op{.kind = OpKind::network, .micro = micro_, .accesses = {read(plan_.input(micro_))}};
  for (int u = 0; u < chain(); ++u) {
    gather(u);
    op.accesses.push_back(read(plan_.parameters(u)));
  }
  op.in_place = is_alone();
  for (int u = 0; u < chain(); ++u) op.in_place = op.in_place && !(is_trained(u) && is_accumulated(u));
  int grad_slot = 0;
  for (int u = 0; u < chain(); ++u) {
    if (is_trained(u))
      op.accesses.push_back(write(op.in_place ? plan_.gradient(u) : plan_.gradient_slot(grad_slot++, u)));
  }
  const bool in_place = replicated_in_place();
  if (has_replicated()) {
    const int resident = plan_.shape().resident();
    op.replicated_in_place = in_place;
    op.accesses.push_back(read(plan_.parameters(resident)));
    op.accesses.push_back(write(in_place ? plan_.gradient(resident) : plan_.replicated_gradients()));
  }
  const bool units_in_place = op.in_place;
  emit(std::move(op));
  grad_slot = 0;
  for (int u = 0; u < chain(); ++u) {
    if (!is_trained(u)) continue;
    if (units_in_place) {
      mark_accumulated(u);
      continue;
    }
    reduce(u, plan_.gradient_slot(grad_slot, u), grad_slot);
    ++grad_slot;
  }
  if (!has_replicated()) return;
  if (in_place) return mark_accumulated(plan_.shape().resident());
  reduce(plan_.shape().resident(), plan_.replicated_gradients(), kNoSlot);
}

void StepBuilder::micro_batch(const std::vector<bool>& trains, Differentiation differentiation) {
  TROUPE_CHECK(static_cast<int>(trains.size()) == chain(), "every unit of the chain is trained or not");
  take_input();
  gather_replicated();
  if (differentiation == Differentiation::manual) return manual(trains);
  forward_pass(/*has_backward=*/true);
  backward_pass(trains);
}

void StepBuilder::forward_only() {
  take_input();
  gather_replicated();
  forward_pass(/*has_backward=*/false);
}

void StepBuilder::vote() {
  TROUPE_CHECK(first_of(state_.postponed, 0) < 0, "a micro-batch runs every unit, and first what was postponed of it");
  for (int u = 0; u < chain(); ++u) {
    if (!state_.whole[static_cast<std::size_t>(u)]) continue;
    reduce(u, plan_.whole_gradient(u), kNoSlot);
    state_.whole[static_cast<std::size_t>(u)] = false;
  }
  for (int u = 0; u < static_cast<int>(state_.accumulated.size()); ++u) {
    if (!is_accumulated(u)) continue;
    if (plan_.shape().replicas > 1) sum_over_replicas(u);
    emit({.kind = OpKind::square,
          .stream = OpStream::optimizer,
          .unit = u,
          .accesses = {read(plan_.gradient(u)), write(plan_.squares(u))}});
  }
  emit({.kind = OpKind::agree, .stream = OpStream::reduce, .accesses = {write(plan_.votes())}});
}

void StepBuilder::clip() {
  if (has_clip_) return;
  has_clip_ = true;
  emit({.kind = OpKind::clip, .stream = OpStream::optimizer, .accesses = {read(plan_.votes()), write(plan_.clip())}});
}

void StepBuilder::fetch(int unit) {
  int& slot = state_slot_[static_cast<std::size_t>(unit)];
  if (!plan_.shape().offloads_states || slot != kNoSlot) return;
  slot = next_state_slot_;
  next_state_slot_ = 1 - next_state_slot_;
  emit({.kind = OpKind::fetch,
        .stream = OpStream::offload,
        .unit = unit,
        .state_slot = slot,
        .accesses = {read(plan_.offloaded(unit)), write(plan_.state_slot(unit, slot))}});
}

int StepBuilder::bring_state(int unit, int next) {
  fetch(unit);
  // beside the work on this one, into the other slot
  if (next >= 0) fetch(next);
  return state_slot_[static_cast<std::size_t>(unit)];
}

void StepBuilder::put_back_state(int unit) {
  const int slot = std::exchange(state_slot_[static_cast<std::size_t>(unit)], kNoSlot);
  if (slot == kNoSlot) return;
  emit({.kind = OpKind::store,
        .stream = OpStream::offload,
        .unit = unit,
        .state_slot = slot,
        .accesses = {read(plan_.state_slot(unit, slot)), write(plan_.offloaded(unit))}});
}

void StepBuilder::curvature(const std::vector<bool>& units) {
  for (int u = first_of(units, 0), next = 0; u >= 0; u = next) {
    next = first_of(units, u + 1);
    const int slot = bring_state(u, next);
    emit({.kind = OpKind::curvature,
          .stream = OpStream::optimizer,
          .unit = u,
          .state_slot = slot,
          .adds = is_accumulated(u),
          .accesses = {{plan_.gradient(u), !is_accumulated(u)}, write(plan_.working_state(StateKind::v, u, slot))}});
    put_back_state(u);
  }
  state_.accumulated.assign(state_.accumulated.size(), false);
}

void StepBuilder::update(int unit, bool has_gradient, int next) {
  clip();
  const int slot = bring_state(unit, next);
  Op op{.kind = OpKind::update, .stream = OpStream::optimizer, .unit = unit, .state_slot = slot, .adds = has_gradient};
  op.accesses = {read(plan_.clip()), {plan_.gradient(unit), !has_gradient}};
  for (const StateKind kind : plan_.kinds(unit)) op.accesses.push_back(write(plan_.working_state(kind, unit, slot)));
  if (plan_.gathered(unit) != plan_.state(StateKind::master, unit)) op.accesses.push_back(write(plan_.gathered(unit)));
  emit(std::move(op));
  put_back_state(unit);
  values_changed(unit);
}

void StepBuilder::update(const std::vector<bool>& units) {
  for (int u = first_of(units, 0), next = 0; u >= 0; u = next) {
    next = first_of(units, u + 1);
    update(u, is_accumulated(u), next);
  }
  state_.accumulated.assign(state_.accumulated.size(), false);
  has_clip_ = false;
}

void StepBuilder::postpone_update(const std::vector<bool>& units) {
  std::vector<bool> without_gradient = units;
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    if (!units[static_cast<std::size_t>(u)] || !is_accumulated(u)) continue;
    without_gradient[static_cast<std::size_t>(u)] = false;
    state_.postponed[static_cast<std::size_t>(u)] = true;
    values_changed(u);
  }
  update(without_gradient);
}

void StepBuilder::catch_up(int unit) {
  if (!state_.postponed[static_cast<std::size_t>(unit)]) return;
  state_.postponed[static_cast<std::size_t>(unit)] = false;
  // units run in order, the first after the last
  const int later = first_of(state_.postponed, unit + 1);
  update(unit, /*has_gradient=*/true, later >= 0 ? later : first_of(state_.postponed, 0));
  if (first_of(state_.postponed, 0) < 0) has_clip_ = false;
}

void StepBuilder::run_postponed() {
  for (int u = first_of(state_.postponed, 0); u >= 0; u = first_of(state_.postponed, u)) catch_up(u);
}

void StepBuilder::values_changed(int unit) {
  // a unit whose values stay is still true in its slot
  if (unit >= chain())
    state_.replicated_is_current = false;
  else
    std::replace(state_.held.begin(), state_.held.end(), unit, -1);
}

void StepBuilder::average(const std::vector<bool>& units) {
  run_postponed();
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    if (!units[static_cast<std::size_t>(u)]) continue;
    const int source = plan_.shape().units[static_cast<std::size_t>(u)].source;
    Op op{.kind = OpKind::average, .stream = OpStream::optimizer, .unit = u};
    op.accesses = {read(plan_.state(StateKind::master, source)), write(plan_.state(StateKind::master, u))};
    if (plan_.gathered(u) != plan_.state(StateKind::master, u)) op.accesses.push_back(write(plan_.gathered(u)));
    emit(std::move(op));
    values_changed(u);
  }
}

void StepBuilder::snapshot() {
  run_postponed();
  for (int u = 0; u < static_cast<int>(plan_.shape().units.size()); ++u) {
    if (plan_.shape().units[static_cast<std::size_t>(u)].keep == UnitKeep::frozen) continue;
    Op op{.kind = OpKind::snapshot, .stream = OpStream::copy, .unit = u};
    for (const StateKind kind : plan_.kinds(u)) {
      op.accesses.push_back(read(plan_.state(kind, u)));
      op.accesses.push_back(write(plan_.snapshot(kind, u)));
    }
    emit(std::move(op));
  }
}

void StepBuilder::publish(const std::vector<std::pair<std::size_t, StateKind>>& what) {
  run_postponed();
  for (const auto& [unit, kind] : what) {
    const int u = static_cast<int>(unit);
    Op op{.kind = OpKind::publish, .stream = OpStream::copy, .unit = u};
    op.accesses.push_back(read(plan_.state(kind, u)));
    emit(std::move(op));
  }
}

}  // namespace troupe::model

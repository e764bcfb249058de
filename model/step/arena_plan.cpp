#include "model/step/arena_plan.h"

#include <algorithm>

#include "base/check.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kF32 = 4;

constexpr ArenaKind kOfTrained[] = {ArenaKind::master, ArenaKind::m, ArenaKind::v, ArenaKind::ema};
constexpr StateKind kKinds[] = {StateKind::master, StateKind::m, StateKind::v, StateKind::ema};

}  // namespace

bool overlap(const ArenaRange& a, const ArenaRange& b) {
  return a.arena == b.arena && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

ArenaPlan::ArenaPlan(StepShape shape) : shape_(std::move(shape)) {
  TROUPE_CHECK(shape_.chain >= 1 && num_units() - shape_.chain <= 1, "a chain of units, and at most one behind it");
  TROUPE_CHECK(shape_.stash_slots == 0 || shape_.stash_slots >= 2, "a block and the one before it are in place");
  TROUPE_CHECK(shape_.param_slots >= 1 && shape_.grad_slots >= 1, "at least one slot of each kind");
  TROUPE_CHECK(shape_.param_bytes == 4 || shape_.param_bytes == 2, "parameters are f32 or bf16");
  TROUPE_CHECK(shape_.moment_bytes == 4 || shape_.moment_bytes == 2, "moments are f32 or bf16");
  const bool is_copied = shape_.param_bytes != kF32;
  std::array<std::int64_t, 3> elements_of_keep{};
  std::int64_t saved = 0, kept = 0, stashed = 0, largest = 0, largest_trained = 0, largest_sent = 0, largest_shard = 0,
               all = 0, whole = 0;
  for (int u = 0; u < num_units(); ++u) {
    TROUPE_CHECK(at(u).padded % shape_.world == 0, "a unit has equal shards");
    auto& before = elements_of_keep[static_cast<std::size_t>(at(u).keep)];
    begin_.push_back(before);
    before += elements(u);
    snapshot_.push_back(saved);
    if (at(u).keep != UnitKeep::frozen) {
      for (const StateKind kind : kinds(u)) saved += state(kind, u).bytes;
    }
    std::int64_t& kept_before = is_stashed(u) ? stashed : kept;
    activation_.push_back(kept_before);
    kept_before += at(u).kept;
    if (is_stashed(u)) stash_slot_bytes_ = std::max(stash_slot_bytes_, at(u).kept);
    const bool is_trained = at(u).keep == UnitKeep::trained;
    if (is_trained) largest_sent = std::max(largest_sent, staging(u).bytes);
    if (is_trained) largest_shard = std::max(largest_shard, elements(u));
    if (u >= shape_.chain) continue;
    slot_.push_back(all * shape_.param_bytes);
    all += at(u).padded;
    whole_.push_back(whole * kF32);
    if (is_trained) whole += at(u).padded;
    largest = std::max(largest, at(u).padded);
    if (is_trained) largest_trained = std::max(largest_trained, at(u).padded);
  }
  const auto [trained, averaged, frozen] = elements_of_keep;
  size(ArenaKind::gradient) = trained * kF32;
  for (const StateKind kind : trained_kinds())
    size(is_offloaded(kind) ? ArenaKind::offloaded : kOfTrained[static_cast<std::size_t>(kind)]) +=
        trained * width(kind, UnitKeep::trained);
  state_slot_bytes_ = largest_shard * offloaded_width();
  size(ArenaKind::state_slots) = 2 * state_slot_bytes_;
  // the replicated parameters' alone, behind which the chain's lie elsewhere
  if (shape_.adds_up_whole())
    size(ArenaKind::gradient) = shape_.has_replicated() ? elements(shape_.resident()) * kF32 : 0;
  size(ArenaKind::averaged) = averaged * kF32;
  if (is_copied) {
    size(ArenaKind::copy) = trained * shape_.param_bytes;
    size(ArenaKind::averaged_copy) = averaged * shape_.param_bytes;
  }
  size(ArenaKind::frozen) = frozen * shape_.param_bytes;
  slot_bytes_ = shape_.is_alone() ? 0 : largest * shape_.param_bytes;
  gradient_slot_bytes_ = largest_trained * kF32;
  size(ArenaKind::slots) =
      has_all_slots() ? (shape_.is_alone() ? 0 : all * shape_.param_bytes) : shape_.param_slots * slot_bytes_;
  size(ArenaKind::gradient_slots) =
      shape_.grad_slots * gradient_slot_bytes_ + (shape_.adds_up_whole() ? whole * kF32 : 0);
  if (!shape_.is_alone()) size(ArenaKind::staging) = largest_sent;
  if (shape_.replicas > 1)
    size(ArenaKind::staging) = std::max(size(ArenaKind::staging), shape_.replicas * largest_shard * kF32);
  if (shape_.has_replicated()) {
    if (!shape_.is_alone()) size(ArenaKind::replicated) = at(shape_.resident()).padded * shape_.param_bytes;
    size(ArenaKind::replicated_gradients) = at(shape_.resident()).padded * kF32;
  }
  size(ArenaKind::inputs) = 2 * shape_.input_bytes;
  kept_outside_ = kept;
  size(ArenaKind::activations) = kept + shape_.stash_slots * stash_slot_bytes_;
  size(ArenaKind::stashed) = stashed;
  size(ArenaKind::carry_gradients) = 1;
  size(ArenaKind::scalars) = (num_units() + 2) * kScalar;
  size(ArenaKind::snapshot) = saved;
}

std::span<const StateKind> ArenaPlan::trained_kinds() const {
  return std::span(kKinds).first(shape_.keeps_average ? 4 : 3);
}

std::span<const StateKind> ArenaPlan::kinds(int unit) const {
  return at(unit).keep == UnitKeep::trained ? trained_kinds() : std::span(kKinds).first(1);
}

std::int64_t ArenaPlan::width(StateKind kind, UnitKeep keep) const {
  if (keep == UnitKeep::frozen) return shape_.param_bytes;
  return kind == StateKind::m || kind == StateKind::v ? shape_.moment_bytes : kF32;
}

ArenaRange ArenaPlan::state(StateKind kind, int unit) const {
  const auto keep = at(unit).keep;
  TROUPE_CHECK(static_cast<std::size_t>(kind) < kinds(unit).size(), "a unit has that kind of state");
  const std::int64_t bytes = elements(unit) * width(kind, keep);
  if (keep == UnitKeep::trained && is_offloaded(kind))
    return {ArenaKind::offloaded, offloaded(unit).begin + elements(unit) * offloaded_width_before(kind), bytes};
  const ArenaKind arena = keep == UnitKeep::frozen     ? ArenaKind::frozen
                          : keep == UnitKeep::averaged ? ArenaKind::averaged
                                                       : kOfTrained[static_cast<std::size_t>(kind)];
  return {arena, begin_[index(unit)] * width(kind, keep), bytes};
}

std::int64_t ArenaPlan::offloaded_width_before(StateKind kind) const {
  std::int64_t sum = 0;
  for (const StateKind before : trained_kinds()) {
    if (before == kind) break;
    if (is_offloaded(before)) sum += width(before, UnitKeep::trained);
  }
  return sum;
}

std::int64_t ArenaPlan::offloaded_width() const {
  std::int64_t sum = 0;
  for (const StateKind kind : trained_kinds()) sum += is_offloaded(kind) ? width(kind, UnitKeep::trained) : 0;
  return sum;
}

ArenaRange ArenaPlan::offloaded(int unit) const {
  return {ArenaKind::offloaded, begin_[index(unit)] * offloaded_width(), elements(unit) * offloaded_width()};
}

ArenaRange ArenaPlan::state_slot(int unit, int slot) const {
  return {ArenaKind::state_slots, slot * state_slot_bytes_, offloaded(unit).bytes};
}

ArenaRange ArenaPlan::working_state(StateKind kind, int unit, int slot) const {
  if (!is_offloaded(kind)) return state(kind, unit);
  return {ArenaKind::state_slots, slot * state_slot_bytes_ + elements(unit) * offloaded_width_before(kind),
          elements(unit) * width(kind, UnitKeep::trained)};
}

ArenaRange ArenaPlan::gradient(int unit) const {
  TROUPE_CHECK(at(unit).keep == UnitKeep::trained, "only a trained unit has a gradient");
  const std::int64_t bytes = elements(unit) * kF32;
  if (!shape_.adds_up_whole()) return {ArenaKind::gradient, begin_[index(unit)] * kF32, bytes};
  if (unit >= shape_.chain) return {ArenaKind::gradient, 0, bytes};
  return {ArenaKind::gradient_slots, whole_gradient(unit).begin + shape_.rank * bytes, bytes};
}

ArenaRange ArenaPlan::gathered(int unit) const {
  if (at(unit).keep == UnitKeep::frozen || shape_.param_bytes == kF32) return state(StateKind::master, unit);
  const ArenaKind arena = at(unit).keep == UnitKeep::averaged ? ArenaKind::averaged_copy : ArenaKind::copy;
  return {arena, begin_[index(unit)] * shape_.param_bytes, elements(unit) * shape_.param_bytes};
}

ArenaRange ArenaPlan::parameters(int unit) const {
  if (shape_.is_alone()) return gathered(unit);
  const std::int64_t bytes = at(unit).padded * shape_.param_bytes;
  if (unit >= shape_.chain) return {ArenaKind::replicated, 0, bytes};
  return {ArenaKind::slots, has_all_slots() ? slot_[index(unit)] : slot_of(unit) * slot_bytes_, bytes};
}

ArenaRange ArenaPlan::gradient_slot(int slot, int unit) const {
  return {ArenaKind::gradient_slots, slot * gradient_slot_bytes_, at(unit).padded * kF32};
}

ArenaRange ArenaPlan::whole_gradient(int unit) const {
  return {ArenaKind::gradient_slots, shape_.grad_slots * gradient_slot_bytes_ + whole_[index(unit)],
          at(unit).padded * kF32};
}

ArenaRange ArenaPlan::staging(int unit) const {
  return {ArenaKind::staging, 0, (shape_.reduce_scatters ? elements(unit) : at(unit).padded) * kF32};
}

ArenaRange ArenaPlan::replicated_gradients() const {
  return {ArenaKind::replicated_gradients, 0, bytes(ArenaKind::replicated_gradients)};
}

ArenaRange ArenaPlan::activation(int unit) const {
  const std::int64_t begin =
      is_stashed(unit) ? kept_outside_ + unit % shape_.stash_slots * stash_slot_bytes_ : activation_[index(unit)];
  return {ArenaKind::activations, begin, at(unit).kept};
}

ArenaRange ArenaPlan::snapshot(StateKind kind, int unit) const {
  std::int64_t begin = snapshot_[index(unit)];
  for (const StateKind before : kinds(unit)) {
    if (before == kind) break;
    begin += state(before, unit).bytes;
  }
  return {ArenaKind::snapshot, begin, state(kind, unit).bytes};
}

}  // namespace troupe::model

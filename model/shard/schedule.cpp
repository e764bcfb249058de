#include "model/shard/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace troupe::model {
namespace {

class Builder {
 public:
  explicit Builder(const ScheduleSpec& spec)
      : spec_(spec), held_(spec.held), writing_(static_cast<std::size_t>(spec.grad_slots), -1) {
    held_.resize(static_cast<std::size_t>(spec.param_slots), -1);
    arriving_.resize(held_.size(), false);
  }

  Schedule build() && {
    for (micro_ = 0; micro_ < spec_.micro_batches; ++micro_) {
      forward_pass();
      if (spec_.mode == ScheduleMode::train) backward_pass();
    }
    return std::move(ops_);
  }

 private:
  int slot_of(int unit) const { return unit % spec_.param_slots; }
  bool is_trainable(int unit) const {
    return spec_.trainable.empty() || spec_.trainable[static_cast<std::size_t>(unit)];
  }
  void emit(OpKind kind, int unit, int slot, int grad_slot) { ops_.push_back({kind, unit, slot, grad_slot, micro_}); }

  void gather(int unit) {
    const auto slot = static_cast<std::size_t>(slot_of(unit));
    if (held_[slot] == unit) return;
    held_[slot] = unit;
    arriving_[slot] = true;
    emit(OpKind::gather, unit, slot_of(unit), -1);
  }

  void wait_gather(int unit) {
    const auto slot = static_cast<std::size_t>(slot_of(unit));
    if (!arriving_[slot]) return;
    arriving_[slot] = false;
    emit(OpKind::wait_gather, unit, slot_of(unit), -1);
  }

  void forward_pass() {
    for (int u = 0; u < spec_.num_units; ++u) {
      for (int ahead = u; ahead < std::min(u + spec_.param_slots, spec_.num_units); ++ahead) gather(ahead);
      wait_gather(u);
      emit(OpKind::forward, u, slot_of(u), -1);
    }
  }

  void backward_pass() {
    int next = 0;
    for (int u = spec_.num_units - 1; u >= 0; --u) {
      for (int ahead = u; ahead > std::max(u - spec_.param_slots, -1); --ahead) gather(ahead);
      wait_gather(u);
      if (!is_trainable(u)) {
        emit(OpKind::backward, u, slot_of(u), -1);
        continue;
      }
      wait_reduce(next);
      emit(OpKind::backward, u, slot_of(u), next);
      emit(OpKind::reduce, u, -1, next);
      writing_[static_cast<std::size_t>(next)] = u;
      next = (next + 1) % spec_.grad_slots;
    }
    for (int i = 0; i < spec_.grad_slots; ++i) wait_reduce((next + i) % spec_.grad_slots);
  }

  void wait_reduce(int grad_slot) {
    int& unit = writing_[static_cast<std::size_t>(grad_slot)];
    if (unit >= 0) emit(OpKind::wait_reduce, unit, -1, grad_slot);
    unit = -1;
  }

  const ScheduleSpec& spec_;
  std::vector<int> held_;
  std::vector<bool> arriving_;
  std::vector<int> writing_;
  int micro_ = 0;
  Schedule ops_;
};

}  // namespace

Schedule make_schedule(const ScheduleSpec& spec) {
  TROUPE_CHECK(spec.num_units >= 2, "a network has a prologue and an epilogue");
  TROUPE_CHECK(spec.param_slots >= 1 && spec.grad_slots >= 1, "at least one slot of each kind");
  TROUPE_CHECK(spec.trainable.empty() || static_cast<int>(spec.trainable.size()) == spec.num_units,
               "every unit is trainable or not");
  return Builder(spec).build();
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& op : schedule) {
    text += fmt::format("{:<11} u{}", enum_name(op.kind), op.unit);
    if (op.slot >= 0) text += fmt::format(" p{}", op.slot);
    if (op.grad_slot >= 0) text += fmt::format(" g{}", op.grad_slot);
    text += fmt::format(" m{}\n", op.micro);
  }
  return text;
}

}  // namespace troupe::model

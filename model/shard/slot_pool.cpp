#include "model/shard/slot_pool.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/check.h"

namespace troupe::model {

SlotPool::SlotPool(int count, std::int64_t elements, at::ScalarType dtype) {
  TROUPE_CHECK(count >= 1, "a pool has at least one slot");
  for (int i = 0; i < count; ++i) slots_.push_back({at::zeros({elements}, dtype), kNone, Phase::empty});
}

SlotPool::Slot& SlotPool::expect(int slot, int unit, Phase phase, const char* what) {
  auto& s = slots_[static_cast<std::size_t>(slot)];
  TROUPE_CHECK(s.phase == phase && s.unit == unit,
               fmt::format("{} of unit {} in slot {}, which is in phase {} with unit {}", what, unit, slot,
                           static_cast<int>(s.phase), s.unit));
  return s;
}

void SlotPool::begin_write(int slot, int unit) {
  auto& s = slots_[static_cast<std::size_t>(slot)];
  TROUPE_CHECK(s.phase == Phase::empty || s.phase == Phase::full,
               fmt::format("unit {} overwrites slot {} while unit {} uses it", unit, slot, s.unit));
  s.unit = unit;
  s.phase = Phase::writing;
}

void SlotPool::end_write(int slot, int unit) {
  expect(slot, unit, Phase::writing, "end of the write").phase = Phase::full;
}
void SlotPool::begin_read(int slot, int unit) { expect(slot, unit, Phase::full, "read").phase = Phase::reading; }
void SlotPool::end_read(int slot, int unit) {
  expect(slot, unit, Phase::reading, "end of the read").phase = Phase::full;
}

int SlotPool::held(int slot) const { return at(slot).phase == Phase::full ? at(slot).unit : kNone; }

std::vector<int> SlotPool::held() const {
  std::vector<int> units;
  for (int i = 0; i < size(); ++i) units.push_back(held(i));
  return units;
}

void SlotPool::forget(int unit) {
  for (auto& s : slots_) {
    if (s.unit != unit) continue;
    TROUPE_CHECK(s.phase == Phase::full,
                 fmt::format("unit {} changes while its slot is in phase {}", unit, static_cast<int>(s.phase)));
    s.unit = kNone;
    s.phase = Phase::empty;
  }
}

void SlotPool::clear() {
  for (auto& s : slots_) {
    s.unit = kNone;
    s.phase = Phase::empty;
  }
}

std::int64_t SlotPool::bytes() const {
  std::int64_t sum = 0;
  for (const auto& s : slots_) sum += static_cast<std::int64_t>(s.buffer.nbytes());
  return sum;
}

}  // namespace troupe::model

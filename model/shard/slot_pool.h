#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::model {

/// K buffers of one size that units take turns in. Every change of hands is checked, because an overwritten slot shows
/// only as a slightly wrong gradient: a slot is written by one unit, then read as that unit, then
/// free.
///
///     parameter slots: write = all-gather, read = forward or backward; the contents stay until overwritten
///     gradient slots:  write = backward, read = reduce-scatter
///
/// A broken rule aborts the process. Not thread-safe.
class SlotPool {
 public:
  static constexpr int kNone = -1;

  /// `count` buffers of `elements` zeros each, 1-D, on the CPU; at least one. Their addresses never change.
  SlotPool(int count, std::int64_t elements, at::ScalarType dtype);

  int size() const { return static_cast<int>(slots_.size()); }
  const at::Tensor& buffer(int slot) const { return at(slot).buffer; }

  /// The slot must not be read or written by anyone; its contents are lost.
  void begin_write(int slot, int unit);
  void end_write(int slot, int unit);
  /// The slot must hold the unit, completely.
  void begin_read(int slot, int unit);
  void end_read(int slot, int unit);

  /// The unit that a slot holds completely, or kNone.
  int held(int slot) const;
  std::vector<int> held() const;
  /// The values behind a unit have changed: a slot that holds it, unread and unwritten, forgets it.
  void forget(int unit);
  /// Forgets all contents and all claims: the values behind them have changed, or a step was given up.
  void clear();

  std::int64_t bytes() const;

 private:
  enum class Phase : std::uint8_t { empty, writing, full, reading };
  struct Slot {
    at::Tensor buffer;
    int unit = kNone;
    Phase phase = Phase::empty;
  };
  const Slot& at(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  Slot& expect(int slot, int unit, Phase phase, const char* what);

  std::vector<Slot> slots_;
};

}  // namespace troupe::model

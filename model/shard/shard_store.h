#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/shard/arenas.h"
#include "model/shard/network.h"
#include "model/shard/shard_kernels.h"
#include "model/step/arena_plan.h"

namespace troupe::model {

UnitKeep keep_of(const UnitSpec& unit);

/// This rank's part of every unit. Of a trained one: master, perhaps ema, and the gradient accumulator in f32, m
/// and v in f32 or bf16, and a bf16 copy of the master when units are gathered in bf16. Of an averaged one: the master,
/// and that copy. Of a frozen one: its values in the dtype that is gathered, nothing else. Not thread-safe. `plan` and
/// `arenas` outlive it.
class ShardStore {
 public:
  ShardStore(const ArenaPlan& plan, const Arenas& arenas);

  std::int64_t elements(std::size_t unit) const { return plan_.elements(static_cast<int>(unit)); }
  /// ArenaPlan::kinds.
  std::span<const StateKind> kinds(std::size_t unit) const { return plan_.kinds(static_cast<int>(unit)); }

  /// Where it is kept. Of a trained unit; the master of an averaged one too. T is what it is kept in, float or
  /// simd::Bf16.
  template <class T = float>
  std::span<T> state(StateKind kind, std::size_t unit) const {
    check_width(kind, unit, sizeof(T));
    const auto bytes = arenas_.bytes(plan_.state(kind, static_cast<int>(unit)));
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Moments are kept in bf16.
  bool has_bf16_moments() const { return plan_.shape().moment_bytes == 2; }
  std::span<float> accumulator(std::size_t unit) const;

  /// Copies one of a unit's kinds() in and out; a frozen unit's values are rounded to what is gathered. Writing the
  /// master rewrites its bf16 copy too. The host has what was read once the stream's work is done.
  void write(StateKind kind, std::size_t unit, std::span<const float> values, ShardKernels& kernels,
             device::Stream& stream);
  void read(StateKind kind, std::size_t unit, std::span<float> out, ShardKernels& kernels,
            device::Stream& stream) const;

  /// What an all-gather of the unit sends: the frozen values, the bf16 copy, or the master itself. 1-D.
  const at::Tensor& gather_source(std::size_t unit) const { return sources_[unit]; }
  /// Where the bf16 copy of a unit's master lies; empty in f32.
  std::span<simd::Bf16> bf16_copy(std::size_t unit) const;
  /// Rewrites it; nothing to do in f32. Errors: those of the kernels.
  Result<void> refresh(std::size_t unit, std::span<const float> master, ShardKernels& kernels,
                       device::Stream& stream) const;

 private:
  UnitKeep keep(std::size_t unit) const { return plan_.shape().units[unit].keep; }
  void check_width(StateKind kind, std::size_t unit, std::size_t bytes) const;
  /// What one of a unit's kinds() is kept in.
  at::ScalarType dtype_of(StateKind kind, std::size_t unit) const;

  const ArenaPlan& plan_;
  const Arenas& arenas_;
  const at::ScalarType param_dtype_;
  /// what gather_source() returns: views into the arenas
  std::vector<at::Tensor> sources_;
};

}  // namespace troupe::model

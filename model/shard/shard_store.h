#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/shard/flat_layout.h"

namespace troupe {

/// What a rank keeps of every unit.
enum class StateKind : std::uint8_t { master, m, v };

/// What is saved of a unit: master, m and v; of a frozen one master alone.
std::span<const StateKind> saved_kinds(bool trainable);

/// This rank's part of every unit. Of a trainable one: master, m, v and the gradient accumulator in f32, and a bf16 copy
/// of the master when units are gathered in bf16. Of a frozen one: its values in the dtype that is gathered, nothing
/// else. One arena per kind, allocated once and zeroed; a trainable unit occupies the same elements of each. Not
/// thread-safe. Spans stay valid as long as the store.
class ShardStore {
 public:
  /// `trainable` has an entry for each layout. `param_dtype`: kFloat or kBFloat16.
  ShardStore(std::span<const FlatLayout> layouts, const std::vector<bool>& trainable, int world,
             at::ScalarType param_dtype);

  std::size_t num_units() const { return places_.size(); }
  std::int64_t elements(std::size_t unit) const { return places_[unit].count; }
  bool is_trainable(std::size_t unit) const { return places_[unit].trainable; }
  /// Elements of all units times the kinds that are saved of them.
  std::int64_t saved_elements() const;

  /// Of a trainable unit.
  std::span<float> state(StateKind kind, std::size_t unit);
  std::span<float> accumulator(std::size_t unit);

  /// Copies one of a unit's saved kinds in and out; a frozen unit's values are rounded to what is gathered. Writing the
  /// master rewrites its bf16 copy too.
  void write(StateKind kind, std::size_t unit, std::span<const float> values);
  void read(StateKind kind, std::size_t unit, std::span<float> out) const;

  /// What an all-gather of the unit sends: the frozen values, the bf16 copy, or the master itself. 1-D.
  at::Tensor gather_source(std::size_t unit) const;
  /// Rewrites the bf16 copy of a trainable unit from its master; nothing to do in f32.
  void refresh(std::size_t unit);

  std::int64_t bytes() const;

 private:
  struct Place {
    std::int64_t begin = 0, count = 0;  ///< in the arenas of trainable units, or in frozen_
    bool trainable = true;
  };
  at::Tensor slice(const at::Tensor& arena, std::size_t unit) const;
  const at::Tensor& arena_of(StateKind kind) const;

  std::vector<Place> places_;
  at::Tensor master_, m_, v_, accumulator_, bf16_, frozen_;
};

}  // namespace troupe

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/shard/flat_layout.h"

namespace troupe {

/// What a rank keeps of every unit.
enum class StateKind : std::uint8_t { master, m, v };

/// This rank's part of every unit: master, m, v and the gradient accumulator in f32, and a bf16 copy of the master when
/// units are gathered in bf16. One arena per kind, allocated once and zeroed; unit u occupies the same elements of
/// each. Not thread-safe. Spans stay valid as long as the store.
class ShardStore {
 public:
  /// `param_dtype`: kFloat or kBFloat16.
  ShardStore(std::span<const FlatLayout> layouts, int world, at::ScalarType param_dtype);

  std::size_t num_units() const { return begins_.size() - 1; }
  std::int64_t elements(std::size_t unit) const { return begins_[unit + 1] - begins_[unit]; }
  std::int64_t total_elements() const { return begins_.back(); }

  std::span<float> state(StateKind kind, std::size_t unit);
  std::span<const float> state(StateKind kind, std::size_t unit) const;
  std::span<float> accumulator(std::size_t unit);
  /// What an all-gather of the unit sends: the bf16 copy, or the master itself. 1-D.
  at::Tensor gather_source(std::size_t unit) const;
  /// Rewrites the bf16 copy from the master; nothing to do in f32.
  void refresh(std::size_t unit);

  std::int64_t bytes() const;

 private:
  std::span<float> slice(const at::Tensor& arena, std::size_t unit) const;

  std::vector<std::int64_t> begins_;
  at::Tensor master_, m_, v_, accumulator_, bf16_;
};

}  // namespace troupe

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/shard/flat_layout.h"
#include "model/shard/network.h"

namespace troupe::model {

/// What a rank keeps of every unit.
enum class StateKind : std::uint8_t { master, m, v };

/// What is saved of a unit: master, m and v; of a frozen one, or a target network, master alone.
std::span<const StateKind> saved_kinds(bool trainable);

/// How a unit's values come about.
enum class UnitKeep : std::uint8_t {
  /// updated by an optimizer: master, m, v and accumulator
  trained,
  /// a target network: the moving average of another unit
  averaged,
  /// never changed after loading: no master, no moments
  frozen,
};
UnitKeep keep_of(const UnitSpec& unit);

/// This rank's part of every unit. Of a trained one: master, m, v and the gradient accumulator in f32, and a bf16 copy
/// of the master when units are gathered in bf16. Of an averaged one: the master, and that copy. Of a frozen one: its
/// values in the dtype that is gathered, nothing else. One arena per kind, allocated once and zeroed; a trained unit
/// occupies the same elements of each. Not thread-safe. Spans stay valid as long as the store.
class ShardStore {
 public:
  /// `keep` has an entry for each layout. `param_dtype`: kFloat or kBFloat16.
  ShardStore(std::span<const FlatLayout> layouts, std::span<const UnitKeep> keep, int world,
             at::ScalarType param_dtype);

  std::size_t num_units() const { return places_.size(); }
  std::int64_t elements(std::size_t unit) const { return places_[unit].count; }
  bool is_trained(std::size_t unit) const { return places_[unit].keep == UnitKeep::trained; }
  /// Elements of all units times the kinds that a snapshot has of them; of a frozen one it has none.
  std::int64_t saved_elements() const;

  /// Of a trained unit; the master of an averaged one too.
  std::span<float> state(StateKind kind, std::size_t unit);
  std::span<float> accumulator(std::size_t unit);
  /// The same as a tensor, 1-D.
  at::Tensor accumulator_tensor(std::size_t unit) const;
  /// The master, or the values of a frozen unit that is gathered in f32.
  std::span<const float> values(std::size_t unit) const;

  /// Copies one of a unit's saved kinds in and out; a frozen unit's values are rounded to what is gathered. Writing the
  /// master rewrites its bf16 copy too.
  void write(StateKind kind, std::size_t unit, std::span<const float> values);
  void read(StateKind kind, std::size_t unit, std::span<float> out) const;

  /// What an all-gather of the unit sends: the frozen values, the bf16 copy, or the master itself. 1-D.
  const at::Tensor& gather_source(std::size_t unit) const { return sources_[unit]; }
  /// Rewrites the bf16 copy of a unit from its master; nothing to do in f32, or of a frozen unit.
  void refresh(std::size_t unit);

  /// Bytes of all arenas. A trained element takes 16 bytes (master, m, v, accumulator), 18 when gathered in bf16.
  std::int64_t bytes() const;

 private:
  struct Place {
    /// in the arenas of units that are kept alike
    std::int64_t begin = 0, count = 0;
    UnitKeep keep = UnitKeep::trained;
  };
  at::Tensor slice(const at::Tensor& arena, std::size_t unit) const;
  std::span<float> part(const at::Tensor& arena, std::size_t unit) const;
  /// The arena that holds a unit's saved kind.
  const at::Tensor& arena_of(StateKind kind, std::size_t unit) const;
  const at::Tensor& copy_arena(std::size_t unit) const;
  void check_kind(StateKind kind, std::size_t unit) const;

  std::vector<Place> places_;
  /// what gather_source() returns: views into the arenas
  std::vector<at::Tensor> sources_;
  /// arenas of trained units, f32 but for bf16_, which is undefined when units are gathered in f32
  at::Tensor master_, m_, v_, accumulator_, bf16_;
  at::Tensor averaged_, averaged_bf16_;
  at::Tensor frozen_;
};

}  // namespace troupe::model

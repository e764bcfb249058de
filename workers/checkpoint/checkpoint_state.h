#pragma once

#include "model/shard/engine.h"
#include "model/shard/shard_store.h"
#include "workers/checkpoint/reader.h"

namespace troupe::workers {

/// A checkpoint as an engine's source of state: f32 elements of a unit's flat buffer, whatever world wrote them. The
/// reader must outlive it. Callers compare layouts first (CheckpointReader::check_layout). Immutable: any thread.
class CheckpointState final : public StateSource {
 public:
  explicit CheckpointState(const CheckpointReader& reader) : reader_(reader) {}

  std::int64_t updates() const override { return reader_.manifest().optimizer.updates; }
  std::map<std::string, std::int64_t> group_updates() const override { return reader_.manifest().optimizer.groups; }
  Result<void> read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                    float* out) const override {
    static_assert(static_cast<int>(StateKind::master) == static_cast<int>(CheckpointReader::Kind::master));
    static_assert(static_cast<int>(StateKind::m) == static_cast<int>(CheckpointReader::Kind::m));
    static_assert(static_cast<int>(StateKind::v) == static_cast<int>(CheckpointReader::Kind::v));
    static_assert(static_cast<int>(StateKind::ema) == static_cast<int>(CheckpointReader::Kind::ema));
    return reader_.read(static_cast<std::int64_t>(unit), static_cast<CheckpointReader::Kind>(kind), begin, count, out);
  }

 private:
  const CheckpointReader& reader_;
};

/// Whether a unit's values lie in the base: it is frozen, and not empty.
inline bool lies_in_base(const UnitSpec& unit, const FlatLayout& layout) {
  return keep_of(unit) == UnitKeep::frozen && layout.numel > 0;
}

/// What a job says of the state that is saved.
struct SavedState {
  /// ema.decay is above 0
  bool has_average = false;
  /// optimizer.moments is bf16
  bool bf16_moments = false;
};
inline SavedState saved_state(const JobConfig& job) {
  return {.has_average = job.ema.decay > 0, .bf16_moments = job.optimizer.moments == "bf16"};
}

/// The manifest's description of an engine's units (state_units of the network's chain) and their layouts.
inline std::vector<ManifestUnit> manifest_units(const std::vector<UnitSpec>& units,
                                                const std::vector<FlatLayout>& layouts, const SavedState& saved = {}) {
  std::vector<ManifestUnit> described;
  for (std::size_t u = 0; u < units.size(); ++u) {
    ManifestUnit unit{.name = units[u].name,
                      .layout_class = units[u].layout_class,
                      .numel = layouts[u].numel,
                      .layout_hash = layouts[u].hash,
                      .trainable = units[u].trainable,
                      .in_base = lies_in_base(units[u], layouts[u]),
                      .has_average = saved.has_average && units[u].trainable,
                      .bf16_moments = saved.bf16_moments && units[u].trainable};
    for (const LayoutEntry& e : layouts[u].entries) unit.params.push_back({e.name, e.shape, e.offset, e.numel});
    described.push_back(std::move(unit));
  }
  return described;
}

}  // namespace troupe::workers

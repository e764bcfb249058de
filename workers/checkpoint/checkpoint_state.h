#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "model/shard/engine.h"
#include "model/shard/shard_store.h"
#include "workers/checkpoint/reader.h"

namespace troupe::workers {

/// A checkpoint as an engine's source of state: f32 elements of a unit's flat buffer, whatever world wrote them.
/// Parameters that an earlier build laid out elsewhere in their unit are found by name. The reader must outlive it.
/// Immutable: any thread.
class CheckpointState final : public StateSource {
 public:
  /// `units`: the engine's (manifest_units), which have passed the reader's check_layout.
  CheckpointState(const CheckpointReader& reader, std::vector<ManifestUnit> units)
      : reader_(reader), units_(std::move(units)) {}

  std::int64_t updates() const override { return reader_.manifest().optimizer.updates; }
  std::map<std::string, std::int64_t> group_updates() const override { return reader_.manifest().optimizer.groups; }
  Result<void> read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                    float* out) const override {
    static_assert(static_cast<int>(StateKind::master) == static_cast<int>(CheckpointReader::Kind::master));
    static_assert(static_cast<int>(StateKind::m) == static_cast<int>(CheckpointReader::Kind::m));
    static_assert(static_cast<int>(StateKind::v) == static_cast<int>(CheckpointReader::Kind::v));
    static_assert(static_cast<int>(StateKind::ema) == static_cast<int>(CheckpointReader::Kind::ema));
    const auto stored = [&](std::int64_t from, std::int64_t n, float* to) {
      return reader_.read(static_cast<std::int64_t>(unit), static_cast<CheckpointReader::Kind>(kind), from, n, to);
    };
    const ManifestUnit &have = reader_.manifest().units[unit], &want = units_[unit];
    if (have.params == want.params) return stored(begin, count, out);
    std::fill(out, out + count, 0.0F);  // gaps
    for (const ManifestParam& param : want.params) {
      const auto first = std::max(begin, param.offset), last = std::min(begin + count, param.offset + param.numel);
      if (first >= last) continue;
      TROUPE_TRY(stored(have.find(param.name)->offset + first - param.offset, last - first, out + (first - begin)));
    }
    return {};
  }

 private:
  const CheckpointReader& reader_;
  const std::vector<ManifestUnit> units_;
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

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/lerobot/modality.h"
#include "data/lerobot/parquet_table.h"
#include "data/statistics/normalise.h"

namespace troupe::data {

/// Statistics of the keys of a sample, in the order of SampleColumns; those of relative action keys are of relative
/// actions.
struct KeyStatistics {
  std::vector<FeatureStatistics> state, action;
};

/// Rows of one key, row-major, cast to T. Requires that the table holds the column and the rows.
template <class T>
std::vector<T> gather_rows(const EpisodeTable& table, const VectorKey& key, std::span<const std::int64_t> rows);

/// Rows of one action key; of a relative key the state at each chunk's first row is subtracted (make_relative).
template <class T>
std::vector<T> gather_actions(const EpisodeTable& table, const ActionKey& key, std::span<const std::int64_t> rows,
                              std::int64_t horizon);

/// From table rows to the state and action of a sample: slice the keys, make actions relative, normalise, concatenate
/// the keys, pad with zeros. Immutable: any thread. T is float (what is trained) or double.
template <class T>
class StateActionTransform {
 public:
  /// Requires statistics aligned with columns.
  StateActionTransform(SampleColumns columns, NormalizationMode mode, const KeyStatistics& statistics);

  /// `out` and `mask` have rows.size() * stride values.
  /// Writes rows.size() rows of `stride` values: the keys in order, then zeros; values beyond the stride are cut.
  /// mask is 1 where a value is real.
  void state(const EpisodeTable& table, std::span<const std::int64_t> rows, std::size_t stride, std::span<T> out,
             std::span<std::uint8_t> mask) const;
  /// The same for actions; rows.size() is a multiple of the horizon.
  void action(const EpisodeTable& table, std::span<const std::int64_t> rows, std::int64_t horizon, std::size_t stride,
              std::span<T> out, std::span<std::uint8_t> mask) const;

 private:
  SampleColumns columns_;
  std::vector<Normalizer<T>> state_, action_;
};

extern template class StateActionTransform<float>;
extern template class StateActionTransform<double>;

}  // namespace troupe::data

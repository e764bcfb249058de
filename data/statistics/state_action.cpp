#include "data/statistics/state_action.h"

#include <algorithm>

#include "data/statistics/relative_actions.h"

namespace troupe::data {

namespace {

/// Copies `values` (rows of `width`) to columns [at, at + width) of the padded output, as far as they fit.
template <class T>
void place(const std::vector<T>& values, std::size_t width, std::size_t at, std::size_t stride, std::span<T> out,
           std::span<std::uint8_t> mask) {
  const std::size_t fits = at >= stride ? 0 : std::min(width, stride - at);
  for (std::size_t row = 0; row * width < values.size(); ++row) {
    for (std::size_t d = 0; d < fits; ++d) {
      out[row * stride + at + d] = values[row * width + d];
      mask[row * stride + at + d] = 1;
    }
  }
}

}  // namespace

template <class T>
std::vector<T> gather_rows(const EpisodeTable& table, const VectorKey& key, std::span<const std::int64_t> rows) {
  const VectorColumn& column = table.vectors.at(key.column);
  std::vector<T> out;
  out.reserve(rows.size() * key.width());
  for (std::int64_t r : rows) {
    const auto row = column.row(r).subspan(static_cast<std::size_t>(key.start), key.width());
    for (double v : row) out.push_back(static_cast<T>(v));
  }
  return out;
}

template <class T>
std::vector<T> gather_actions(const EpisodeTable& table, const ActionKey& key, std::span<const std::int64_t> rows,
                              std::int64_t horizon) {
  std::vector<T> actions = gather_rows<T>(table, key.key, rows);
  if (!key.relative) return actions;
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < rows.size(); i += static_cast<std::size_t>(horizon)) starts.push_back(rows[i]);
  const std::vector<T> states = gather_rows<T>(table, key.reference, starts);
  make_relative<T>(actions, states, key.key.width(), horizon);
  return actions;
}

template <class T>
StateActionTransform<T>::StateActionTransform(SampleColumns columns, NormalizationMode mode,
                                              const KeyStatistics& statistics)
    : columns_(std::move(columns)) {
  TROUPE_CHECK(statistics.state.size() == columns_.state.size() && statistics.action.size() == columns_.action.size(),
               "statistics belong to the same keys");
  for (const FeatureStatistics& s : statistics.state) state_.emplace_back(mode, s);
  for (const FeatureStatistics& s : statistics.action) action_.emplace_back(mode, s);
}

template <class T>
void StateActionTransform<T>::state(const EpisodeTable& table, std::span<const std::int64_t> rows, std::size_t stride,
                                    std::span<T> out, std::span<std::uint8_t> mask) const {
  std::fill(out.begin(), out.end(), T{0});
  std::fill(mask.begin(), mask.end(), std::uint8_t{0});
  std::size_t at = 0;
  for (std::size_t k = 0; k < columns_.state.size(); ++k) {
    const std::size_t width = columns_.state[k].width();
    std::vector<T> values = gather_rows<T>(table, columns_.state[k], rows);
    (void)state_[k].forward(values);
    place<T>(values, width, at, stride, out, mask);
    at += width;
  }
}

template <class T>
void StateActionTransform<T>::action(const EpisodeTable& table, std::span<const std::int64_t> rows,
                                     std::int64_t horizon, std::size_t stride, std::span<T> out,
                                     std::span<std::uint8_t> mask) const {
  std::fill(out.begin(), out.end(), T{0});
  std::fill(mask.begin(), mask.end(), std::uint8_t{0});
  std::size_t at = 0;
  for (std::size_t k = 0; k < columns_.action.size(); ++k) {
    const std::size_t width = columns_.action[k].key.width();
    std::vector<T> values = gather_actions<T>(table, columns_.action[k], rows, horizon);
    (void)action_[k].forward(values);
    place<T>(values, width, at, stride, out, mask);
    at += width;
  }
}

template std::vector<float> gather_rows<float>(const EpisodeTable&, const VectorKey&, std::span<const std::int64_t>);
template std::vector<double> gather_rows<double>(const EpisodeTable&, const VectorKey&, std::span<const std::int64_t>);
template std::vector<float> gather_actions<float>(const EpisodeTable&, const ActionKey&, std::span<const std::int64_t>,
                                                  std::int64_t);
template std::vector<double> gather_actions<double>(const EpisodeTable&, const ActionKey&,
                                                    std::span<const std::int64_t>, std::int64_t);
template class StateActionTransform<float>;
template class StateActionTransform<double>;

}  // namespace troupe::data

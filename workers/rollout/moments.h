#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// Running count, mean and sum of squared deviations (M2) of D numbers, in f64. In memory: count, D means, D M2: 1 +
/// 2 D numbers. Not thread-safe.
///
/// Two parts a and b are merged by Chan's formula (Chan, Golub and LeVeque 1979), with d = mean_b - mean_a:
///     count = count_a + count_b    mean = mean_a + d count_b / count    M2 = M2_a + M2_b + d^2 count_a count_b / count
/// The same parts in the same order give the same bits.
class Moments {
 public:
  Moments() : Moments(0) {}
  explicit Moments(std::size_t dim) : numbers_(1 + 2 * dim, 0.0) {}
  /// Of 1 + 2 D numbers, as numbers() gives them.
  explicit Moments(std::span<const double> numbers) : numbers_(numbers.begin(), numbers.end()) {}

  std::size_t dim() const { return (numbers_.size() - 1) / 2; }
  double count() const { return numbers_[0]; }
  double mean(std::size_t i) const { return numbers_[1 + i]; }
  /// Population variance; 1 before anything was counted.
  double variance(std::size_t i) const { return count() > 0 ? numbers_[1 + dim() + i] / count() : 1.0; }
  std::span<const double> numbers() const { return numbers_; }

  /// Counts what `other` counted too. Another D is an invariant violation; a part with count 0 changes nothing.
  void merge(std::span<const double> other);
  void merge(const Moments& other) { merge(other.numbers()); }
  /// Counts rows [rows, D]: their mean and M2 in two passes, then one merge, so that one call is one part.
  void add(std::span<const float> rows);
  /// Back to count 0; D stays.
  void clear();

 private:
  // batch_: the part that add() merges, kept for its memory.
  std::vector<double> numbers_, batch_;
};

/// Statistics that travel with published weights: what observations and rewards are normalised with. Evaluation and
/// serving use them frozen; checkpoints keep them in trainer_state.json (trainer_state.h).
struct NormaliserState {
  /// Of the D numbers of the state; D = 0: observations are not normalised.
  Moments observed;
  /// Of the discounted return; D = 0: rewards are not normalised.
  Moments returned;
};
/// u64 D of `observed`, u64 D of `returned`, then f64 numbers of both (1 + 2 D each), little-endian.
std::string encode(const NormaliserState& state);
/// Empty text is the state without statistics. Errors: invalid_argument (cut short, or not made by encode).
Result<NormaliserState> decode_normaliser(std::string_view text);

/// y = clamp((x - mean) / sqrt(variance + 1e-8), -clip, clip) of rows of D numbers, in place, in f32. Immutable: any
/// thread. Source: NormalizeObservation of Gymnasium (epsilon 1e-8).
class StateScale {
 public:
  /// Without statistics apply() changes nothing.
  StateScale() = default;
  /// `clip` is rollout.clip_obs. Before anything was counted mean is 0 and variance 1: the clip alone acts. Columns
  /// whose `normalised` (ObservationParts) is 0 stay as they are.
  StateScale(const Moments& observed, double clip, std::span<const std::uint8_t> normalised);
  /// [rows, D], any number of rows.
  void apply(std::span<float> rows) const;

 private:
  std::vector<float> mean_, inverse_, clip_;
};

}  // namespace troupe::workers

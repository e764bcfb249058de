#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Running count, mean and sum of squared deviations (M2) of D numbers, in f64. Merged by Chan's formula: exact, and the same
/// bits whenever the same parts are merged in the same order. In memory: count, D means, D M2: 1 + 2 D numbers.
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

  /// Counts what `other` counted too. `other` is of the same D.
  void merge(std::span<const double> other);
  void merge(const Moments& other) { merge(other.numbers()); }
  /// Counts rows of D numbers each.
  void add(std::span<const float> rows);
  void clear();

 private:
  std::vector<double> numbers_, batch_;
};

/// Statistics that travel with published weights: what observations and rewards are normalised with. They are frozen in
/// evaluation and serving, and kept in checkpoints (design.md section 7).
struct NormaliserState {
  Moments observed;  ///< of the D numbers of the state; D = 0: observations are not normalised
  Moments returned;  ///< of the discounted return; D = 0: rewards are not normalised
};
/// Two little-endian u64 (D of each), then the numbers of both.
std::string encode(const NormaliserState& state);
/// Empty text is the state without statistics. Errors: invalid_argument (cut short, or not made by encode).
Result<NormaliserState> decode_normaliser(std::string_view text);

/// clamp((x - mean) / sqrt(variance + 1e-8), -clip, clip) of rows of D numbers, in place, in f32.
/// Source: Gymnasium's NormalizeObservation (epsilon 1e-8).
class StateScale {
 public:
  StateScale() = default;
  StateScale(const Moments& observed, double clip);
  void apply(std::span<float> rows) const;

 private:
  std::vector<float> mean_, inverse_;
  float clip_ = 0;
};

}  // namespace troupe

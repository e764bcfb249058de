#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "data/statistics/statistics.h"

namespace troupe::data {

/// How a state or action dimension is brought near [-1, 1].
///     q99       clamp(2 (x - q01) / (q99 - q01) - 1, -1, 1)     constant dimension: x, clamped
///     min_max   the same with min and max                       constant dimension: 0
///     mean_std  (x - mean) / std, no clamp                      std 0: x
///     scale     x / max(|min|, |max|), no inverse               all zero: 0
///     binary    1 where x > 0.5, else 0
/// The inverse of q99, min_max and mean_std is that of the formula without the clamp; that of binary is x > 0.5.
/// Source: the normalisation modes of GEAR's state-action transform (GR00T N1).
enum class NormalizationMode : std::uint8_t { q99, min_max, mean_std, scale, binary };
constexpr auto enum_names(NormalizationMode) { return std::array{"q99", "min_max", "mean_std", "scale", "binary"}; }

/// Errors: invalid_argument (an unknown name).
Result<NormalizationMode> normalization_mode(const std::string& name);

/// Normalises row-major rows in place. Statistics are cast to T before use, so a dimension may be constant in float and
/// not in double. T is float or double. Immutable after construction: any thread.
template <class T>
class Normalizer {
 public:
  /// Requires complete statistics.
  Normalizer(NormalizationMode mode, const FeatureStatistics& statistics);

  /// Dimensions of a row.
  std::size_t width() const { return low_.size(); }
  /// Returns how many values min_max found more than 1e-5 outside [-1, 1] before the clamp; 0 in other modes.
  std::int64_t forward(std::span<T> rows) const;
  /// Errors: failed_precondition (scale has no inverse).
  Result<void> inverse(std::span<T> rows) const;

 private:
  NormalizationMode mode_;
  /// q01, min or mean.
  std::vector<T> low_;
  /// q99 - q01, max - min, std or the largest magnitude.
  std::vector<T> range_;
};

/// One Normalizer per horizon step: row i uses statistics[i mod horizon]. Statistics are rounded to float32 first, as
/// the reference does, whatever T is.
template <class T>
class HorizonNormalizer {
 public:
  HorizonNormalizer(NormalizationMode mode, std::span<const FeatureStatistics> statistics);

  /// Errors: invalid_argument (more rows than the horizon and no multiple of it; binary takes any number).
  Result<void> forward(std::span<T> rows) const;
  Result<void> inverse(std::span<T> rows) const;

 private:
  Result<void> check(std::size_t rows) const;
  NormalizationMode mode_;
  std::vector<Normalizer<T>> steps_;
};

extern template class Normalizer<float>;
extern template class Normalizer<double>;
extern template class HorizonNormalizer<float>;
extern template class HorizonNormalizer<double>;

}  // namespace troupe::data

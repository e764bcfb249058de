#include "data/statistics/normalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::data {

namespace {

FeatureStatistics rounded_to_float(FeatureStatistics s) {
  for (auto* v : {&s.min, &s.max, &s.mean, &s.std, &s.q01, &s.q99}) {
    for (double& x : *v) x = static_cast<double>(static_cast<float>(x));
  }
  return s;
}

}  // namespace

Result<NormalizationMode> normalization_mode(const std::string& name) {
  if (const auto mode = enum_value<NormalizationMode>(name)) return *mode;
  return invalid_argument(fmt::format("normalization '{}' is not one of q99, min_max, mean_std, scale, binary", name));
}

template <class T>
Normalizer<T>::Normalizer(NormalizationMode mode, const FeatureStatistics& s) : mode_(mode) {
  for (std::size_t d = 0; d < s.width(); ++d) {
    const T min = static_cast<T>(s.min[d]), max = static_cast<T>(s.max[d]);
    const T q01 = static_cast<T>(s.q01[d]), q99 = static_cast<T>(s.q99[d]);
    switch (mode) {
      case NormalizationMode::q99:
        low_.push_back(q01);
        range_.push_back(q99 - q01);
        break;
      case NormalizationMode::min_max:
        low_.push_back(min);
        range_.push_back(max - min);
        break;
      case NormalizationMode::mean_std:
        low_.push_back(static_cast<T>(s.mean[d]));
        range_.push_back(static_cast<T>(s.std[d]));
        break;
      case NormalizationMode::scale:
      case NormalizationMode::binary:
        low_.push_back(T{0});
        range_.push_back(std::max(std::abs(min), std::abs(max)));
        break;
    }
  }
}

template <class T>
std::int64_t Normalizer<T>::forward(std::span<T> rows) const {
  const std::size_t width = low_.size();
  std::int64_t outside = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const T low = low_[i % width], range = range_[i % width];
    T& x = rows[i];
    switch (mode_) {
      case NormalizationMode::q99:
        if (range != T{0}) x = T{2} * (x - low) / range - T{1};
        x = std::clamp(x, T{-1}, T{1});
        break;
      case NormalizationMode::min_max:
        x = range != T{0} ? T{2} * (x - low) / range - T{1} : T{0};
        if (std::abs(x) > T{1} + T(1e-5)) ++outside;
        x = std::clamp(x, T{-1}, T{1});
        break;
      case NormalizationMode::mean_std:
        if (range != T{0}) x = (x - low) / range;
        break;
      case NormalizationMode::scale:
        x = range != T{0} ? x / range : T{0};
        break;
      case NormalizationMode::binary:
        x = x > T(0.5) ? T{1} : T{0};
        break;
    }
  }
  return outside;
}

template <class T>
Result<void> Normalizer<T>::inverse(std::span<T> rows) const {
  if (mode_ == NormalizationMode::scale) {
    return Error{Errc::failed_precondition, "normalization 'scale' has no inverse; use q99, min_max or mean_std"};
  }
  const std::size_t width = low_.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const T low = low_[i % width], range = range_[i % width];
    T& y = rows[i];
    if (mode_ == NormalizationMode::binary) {
      y = y > T(0.5) ? T{1} : T{0};
    } else if (mode_ == NormalizationMode::mean_std) {
      y = y * range + low;
    } else {
      y = (y + T{1}) / T{2} * range + low;
    }
  }
  return {};
}

template <class T>
HorizonNormalizer<T>::HorizonNormalizer(NormalizationMode mode, std::span<const FeatureStatistics> statistics)
    : mode_(mode) {
  for (const FeatureStatistics& s : statistics) steps_.emplace_back(mode, rounded_to_float(s));
}

template <class T>
Result<void> HorizonNormalizer<T>::check(std::size_t rows) const {
  const std::size_t horizon = steps_.size();
  if (rows <= horizon || rows % horizon == 0 || mode_ == NormalizationMode::binary) return {};
  return invalid_argument(fmt::format("{} rows are no multiple of the horizon of {} statistics", rows, horizon));
}

template <class T>
Result<void> HorizonNormalizer<T>::forward(std::span<T> rows) const {
  const std::size_t width = steps_.front().width();
  TROUPE_TRY(check(rows.size() / width));
  for (std::size_t i = 0; i * width < rows.size(); ++i) {
    (void)steps_[i % steps_.size()].forward(rows.subspan(i * width, width));
  }
  return {};
}

template <class T>
Result<void> HorizonNormalizer<T>::inverse(std::span<T> rows) const {
  const std::size_t width = steps_.front().width();
  TROUPE_TRY(check(rows.size() / width));
  for (std::size_t i = 0; i * width < rows.size(); ++i) {
    TROUPE_TRY(steps_[i % steps_.size()].inverse(rows.subspan(i * width, width)));
  }
  return {};
}

template class Normalizer<float>;
template class Normalizer<double>;
template class HorizonNormalizer<float>;
template class HorizonNormalizer<double>;

}  // namespace troupe::data

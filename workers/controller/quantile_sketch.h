#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

namespace troupe::workers {

/// Quantiles of values that are 0 or more, in bounded memory: counts in buckets whose bounds grow by a constant factor,
/// so that a quantile is off by at most 1 % of itself (arXiv:1908.10693). At most 2,500 buckets: values below 1e-9
/// count as 0, values above 1e12 as 1e12. Not thread-safe.
class QuantileSketch {
 public:
  void add(double value) {
    ++count_;
    if (!(value >= kLeast)) return;  // 0, or no number
    ++buckets_[static_cast<int>(std::ceil(std::log(std::min(value, kMost)) / std::log(kGrowth)))];
  }
  std::int64_t count() const { return count_; }
  /// The value of rank round(q (count - 1)), q in [0, 1]; 0 without any.
  double quantile(double q) const {
    std::int64_t below = count_;
    for (const auto& [bucket, number] : buckets_) below -= number;
    const std::int64_t rank = std::llround(q * static_cast<double>(count_ - 1));
    if (count_ == 0 || rank < below) return 0;
    for (const auto& [bucket, number] : buckets_) {
      below += number;
      if (rank < below) return 2 * std::pow(kGrowth, bucket) / (kGrowth + 1);  // the middle of the bucket
    }
    return kMost;
  }

 private:
  static constexpr double kError = 0.01, kGrowth = (1 + kError) / (1 - kError), kLeast = 1e-9, kMost = 1e12;
  std::int64_t count_ = 0;
  // Number of values in (growth^(b-1), growth^b].
  std::map<int, std::int64_t> buckets_;
};

}  // namespace troupe::workers

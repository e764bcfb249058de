#include "model/cores/core_rates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/product.h"

namespace troupe::model {
namespace {

double to_real(std::int64_t value) { return static_cast<double>(value); }

double rounds(std::int64_t parts, int threads) { return std::ceil(to_real(parts) / std::max(1, threads)); }

TileGrid grid_of(const KernelWork& product) { return product_tiles(product.m, product.n, product.k); }

/// Whether all threads share one call of it.
bool is_shared(KernelFamily family) {
  return !is_product(family) && !is_attention(family) && !is_transfer(family) && family != KernelFamily::serial;
}

}  // namespace

double rounds_of(const KernelWork& work, int threads) {
  if (is_product(work.family)) return rounds(grid_of(work).count(), threads);
  return is_attention(work.family) ? rounds(work.heads, threads) : 1;
}

KernelFeatures features_of(const KernelWork& work, int threads, int measured_threads) {
  if (is_product(work.family) || is_attention(work.family)) {
    double m = to_real(work.m), n = to_real(work.n);
    const double k = to_real(work.k);
    if (is_product(work.family)) {
      const TileGrid grid = grid_of(work);
      m /= to_real(grid.rows), n /= to_real(grid.cols);
    }
    return {1, m * n * k, (m + n) * k, m * n};
  }
  const int fewer = std::clamp(threads, 1, std::max(1, measured_threads));
  const double bytes = is_shared(work.family) ? work.bytes * measured_threads / fewer : work.bytes;
  return {1, bytes, std::max(0.0, bytes - kCachedBytes), 0};
}

double seconds_of(const KernelWork& work, const CoreRates& rates, int threads) {
  const KernelFeatures features = features_of(work, threads, rates.threads);
  const KernelFeatures& coefficients = rates.of(work.family, work.is_bf16);
  double one = 0;
  for (std::size_t i = 0; i < features.size(); ++i) one += features[i] * coefficients[i];
  return work.calls * rounds_of(work, threads) * one;
}

KernelFeatures fit_coefficients(std::span<const TimedWork> timed, int threads) {
  // rows of a system A x = 1: features of a call over its seconds, each column scaled to unit length
  std::vector<KernelFeatures> rows;
  KernelFeatures scale{};
  for (const TimedWork& one : timed) {
    KernelFeatures row = features_of(one.work, threads, threads);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] *= one.work.calls * rounds_of(one.work, threads) / one.seconds;
      scale[i] += row[i] * row[i];
    }
    rows.push_back(row);
  }
  for (double& length : scale) length = std::sqrt(length);
  KernelFeatures x{};
  std::vector<double> rest(rows.size(), 1.0);
  // coordinate descent: each coefficient in turn takes its best value that is not negative
  constexpr int kSweeps = 5000;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (scale[i] == 0) continue;
      double along = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) along += rows[r][i] / scale[i] * rest[r];
      const double step = std::max(-x[i], along);
      x[i] += step;
      for (std::size_t r = 0; r < rows.size(); ++r) rest[r] -= step * rows[r][i] / scale[i];
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = scale[i] == 0 ? 0 : x[i] / scale[i];
  return x;
}

}  // namespace troupe::model

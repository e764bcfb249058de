#pragma once

#include <array>
#include <span>

#include "model/cores/kernel_work.h"

namespace troupe::model {

/// Seconds of a kernel are the sum of features of its work, each times a coefficient of the machine. Features of one
/// call on one thread:
///     a product      1, m n k, (m + n) k, m n      of one tile: a call, multiplications, operands, the result
///     attention      1, m n k, (m + n) k, m n      of one head: a call, multiplications, operands, the softmax
///     all others     1, bytes, bytes beyond kCachedBytes, 0
using KernelFeatures = std::array<double, 4>;

/// From here on what a kernel reads and writes is taken to come from memory instead of a cache.
inline constexpr double kCachedBytes = 8 << 20;

/// What one machine's cores reach with one version of LibTorch, all of them busy. A value; measure_core_rates measures
/// it.
struct CoreRates {
  /// Threads that were busy: the cores of the machine.
  int threads = 0;
  /// Of a product of a transformer's size (512 x 2048 by 2048 x 2048) on all threads, f32 and native bf16, the best of
  /// some, FLOP/s: what a "product rate share" is a share of.
  std::array<double, 2> products{};
  /// seconds a feature, by dtype (f32, bf16) and family
  std::array<std::array<KernelFeatures, kKernelFamilies>, 2> coefficients{};

  const KernelFeatures& of(KernelFamily family, bool is_bf16) const {
    return coefficients[is_bf16 ? 1 : 0][static_cast<std::size_t>(family)];
  }
  bool operator==(const CoreRates&) const = default;
};

/// The work of one of the calls that threads make one after the other.
KernelFeatures features_of(const KernelWork& work, int threads, int measured_threads);
/// Calls that follow each other on one thread: rounds of tiles, rounds of heads; 1 for other kernels.
double rounds_of(const KernelWork& work, int threads);

/// Seconds of the work on `threads` of the machine's cores, the others being as busy. What all threads share takes
/// rates.threads / threads times as long on fewer; tiles and heads are shared in whole ones. Pure.
double seconds_of(const KernelWork& work, const CoreRates& rates, int threads);

/// A kernel's work and what it took.
struct TimedWork {
  KernelWork work;
  double seconds = 0;
};

/// The coefficients, none negative, that explain the times best: least squares of relative errors. `threads` that
/// shared the work. Pure.
KernelFeatures fit_coefficients(std::span<const TimedWork> timed, int threads);

}  // namespace troupe::model

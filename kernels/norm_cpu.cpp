// Layer norm with modulation, and RMS norm with rotation, row by row. A row of 128 to 5,120 channels stays in the first
// cache between the passes over it, so each matrix is read and written once: the budget is memory bandwidth.
#include <algorithm>
#include <vector>

#include "kernels/row_kernels.h"
#include "kernels/simd.h"
#include "kernels/threads.h"

namespace troupe::kernels::cpu {
namespace {

using simd::each_vector;
using simd::load;
using simd::store;
using simd::Vec;

/// Adds each run's part of a table gradient, in the order of the runs; channels are shared among the threads.
template <class A>
void sum_runs(const std::vector<RowRun>& runs, std::int64_t channels, std::int64_t table_rows, const A* parts, A* total,
              int threads) {
  parallel(channels, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = 0; r < table_rows; ++r)
      std::fill(total + r * channels + begin, total + r * channels + end, A{});
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const A* part = parts + static_cast<std::int64_t>(i) * channels;
      A* sum = total + runs[i].table * channels;
      for (std::int64_t c = begin; c < end; ++c) sum[c] += part[c];
    }
  });
}

template <class T>
TROUPE_INLINE void normalise_row(std::int64_t n, const T* x, const T* factor, const T* shift, Acc<T> eps, T* y,
                                 Acc<T>* stats) {
  using A = Acc<T>;
  Vec<A> sum = {};
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA { sum += load(x + i, count); });
  const A mean = simd::lane_sum<A>(sum) / static_cast<A>(n);
  Vec<A> squares = {};
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    Vec<A> d = load(x + i, count) - mean;
    if (count != simd::kWidth<A>) d = simd::first_lanes<A>(d, count);
    squares += d * d;
  });
  const A rstd = 1 / std::sqrt(simd::lane_sum<A>(squares) / static_cast<A>(n) + eps);
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> normed = (load(x + i, count) - mean) * rstd;
    store(y + i, Vec<A>(normed * load(factor + i, count) + load(shift + i, count)), count);
  });
  stats[0] = mean;
  stats[1] = rstd;
}

template <class T>
TROUPE_INLINE void normalise_row_backward(std::int64_t n, const T* dy, const T* x, const T* factor, const Acc<T>* stats,
                                          T* dx, Acc<T>* dfactor, Acc<T>* dshift) {
  using A = Acc<T>;
  const A mean = stats[0], rstd = stats[1];
  Vec<A> sum = {}, dot = {};
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> d = load(dy + i, count), normed = (load(x + i, count) - mean) * rstd;
    const Vec<A> g = d * load(factor + i, count);
    sum += g;
    dot += g * normed;
    store(dfactor + i, Vec<A>(load(dfactor + i, count) + d * normed), count);
    store(dshift + i, Vec<A>(load(dshift + i, count) + d), count);
  });
  const A mean_g = simd::lane_sum<A>(sum) / static_cast<A>(n), mean_dot = simd::lane_sum<A>(dot) / static_cast<A>(n);
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> normed = (load(x + i, count) - mean) * rstd, g = load(dy + i, count) * load(factor + i, count);
    store(dx + i, Vec<A>((g - mean_g - normed * mean_dot) * rstd), count);
  });
}

/// Rotates the pairs of one row by `sign` times its angles, in place.
template <class A>
TROUPE_INLINE void rotate_row(std::int64_t n, std::int64_t head_dim, const A* cos, const A* sin, A sign, A* v) {
  const std::int64_t pairs = head_dim / 2;
  for (std::int64_t head = 0; head < n; head += head_dim) {
    A* h = v + head;
    for (std::int64_t j = 0; j < pairs; ++j) {
      const A even = h[2 * j], odd = h[2 * j + 1], s = sign * sin[j];
      h[2 * j] = even * cos[j] - odd * s;
      h[2 * j + 1] = even * s + odd * cos[j];
    }
  }
}

template <class T>
TROUPE_INLINE void rms_row(std::int64_t n, const T* x, const T* gain, Acc<T> eps, const Rotation<T>& rotation,
                           std::int64_t token, T* y, Acc<T>* rstd, Acc<T>* scratch) {
  using A = Acc<T>;
  Vec<A> squares = {};
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> v = load(x + i, count);
    squares += v * v;
  });
  const A r = 1 / std::sqrt(simd::lane_sum<A>(squares) / static_cast<A>(n) + eps);
  *rstd = r;
  // rounded to T where the reference rounds: after the norm and after the gain
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> normed = simd::rounded<T, A>(load(x + i, count) * r);
    store(scratch + i, simd::rounded<T, A>(normed * load(gain + i, count)), count);
  });
  if (rotation.cos != nullptr) {
    const auto offset = token * rotation.head_dim / 2;
    rotate_row<A>(n, rotation.head_dim, rotation.cos + offset, rotation.sin + offset, A{1}, scratch);
  }
  each_vector<A>(
      n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA { store(y + i, load(scratch + i, count), count); });
}

template <class T>
TROUPE_INLINE void rms_row_backward(std::int64_t n, const T* dy, const T* x, const T* gain, Acc<T> rstd,
                                    const Rotation<T>& rotation, std::int64_t token, T* dx, Acc<T>* dgain,
                                    Acc<T>* scratch) {
  using A = Acc<T>;
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count)
                        TROUPE_LAMBDA { store(scratch + i, Vec<A>(load(dy + i, count)), count); });
  if (rotation.cos != nullptr) {
    const auto offset = token * rotation.head_dim / 2;
    rotate_row<A>(n, rotation.head_dim, rotation.cos + offset, rotation.sin + offset, A{-1}, scratch);
  }
  Vec<A> dot = {};
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> d = load(scratch + i, count), normed = load(x + i, count) * rstd;
    const Vec<A> g = d * load(gain + i, count);
    dot += g * normed;
    store(dgain + i, Vec<A>(load(dgain + i, count) + d * normed), count);
    store(scratch + i, g, count);
  });
  const A mean_dot = simd::lane_sum<A>(dot) / static_cast<A>(n);
  each_vector<A>(n, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
    const Vec<A> normed = load(x + i, count) * rstd;
    store(dx + i, Vec<A>((load(scratch + i, count) - normed * mean_dot) * rstd), count);
  });
}

}  // namespace

template <class T>
void modulated_norm_forward(const std::vector<RowRun>& runs, std::int64_t channels, const T* x, Table<T> factor,
                            Table<T> shift, double eps, T* y, Acc<T>* stats, int threads) {
  parallel(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto i = begin; i < end; ++i) {
        const auto& run = runs[static_cast<std::size_t>(i)];
        for (auto row = run.begin; row < run.end; ++row) {
          normalise_row<T>(channels, x + row * channels, factor.data + run.table * factor.stride,
                           shift.data + run.table * shift.stride, static_cast<Acc<T>>(eps), y + row * channels,
                           stats + 2 * row);
        }
      }
    });
  });
}

template <class T>
void modulated_norm_backward(const std::vector<RowRun>& runs, std::int64_t channels, std::int64_t table_rows,
                             const T* dy, const T* x, Table<T> factor, const Acc<T>* stats, T* dx, Acc<T>* dfactor,
                             Acc<T>* dshift, int threads) {
  const auto count = static_cast<std::int64_t>(runs.size());
  std::vector<Acc<T>> factor_parts(runs.size() * static_cast<std::size_t>(channels)), shift_parts(factor_parts.size());
  parallel(count, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto i = begin; i < end; ++i) {
        const auto& run = runs[static_cast<std::size_t>(i)];
        for (auto row = run.begin; row < run.end; ++row) {
          normalise_row_backward<T>(channels, dy + row * channels, x + row * channels,
                                    factor.data + run.table * factor.stride, stats + 2 * row, dx + row * channels,
                                    factor_parts.data() + i * channels, shift_parts.data() + i * channels);
        }
      }
    });
  });
  sum_runs(runs, channels, table_rows, factor_parts.data(), dfactor, threads);
  sum_runs(runs, channels, table_rows, shift_parts.data(), dshift, threads);
}

template <class T>
void rms_norm_forward(std::int64_t rows, std::int64_t channels, const T* x, std::int64_t x_stride, const T* gain,
                      double eps, const Rotation<T>& rotation, T* y, Acc<T>* rstd, int threads) {
  parallel(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Acc<T>> scratch(static_cast<std::size_t>(channels));
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto row = begin; row < end; ++row) {
        const auto token = rotation.cos == nullptr ? 0 : row % rotation.tokens;
        rms_row<T>(channels, x + row * x_stride, gain, static_cast<Acc<T>>(eps), rotation, token, y + row * channels,
                   rstd + row, scratch.data());
      }
    });
  });
}

template <class T>
void rms_norm_backward(std::int64_t rows, std::int64_t channels, const T* dy, const T* x, std::int64_t x_stride,
                       const T* gain, const Acc<T>* rstd, const Rotation<T>& rotation, T* dx, std::int64_t dx_stride,
                       Acc<T>* dgain, int threads) {
  const auto runs = row_runs(1, rows, nullptr, 1, false);
  std::vector<Acc<T>> parts(runs.size() * static_cast<std::size_t>(channels));
  parallel(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Acc<T>> scratch(static_cast<std::size_t>(channels));
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto i = begin; i < end; ++i) {
        const auto& run = runs[static_cast<std::size_t>(i)];
        for (auto row = run.begin; row < run.end; ++row) {
          const auto token = rotation.cos == nullptr ? 0 : row % rotation.tokens;
          rms_row_backward<T>(channels, dy + row * channels, x + row * x_stride, gain, rstd[row], rotation, token,
                              dx + row * dx_stride, parts.data() + i * channels, scratch.data());
        }
      }
    });
  });
  sum_runs(runs, channels, 1, parts.data(), dgain, threads);
}

template <class T>
void sum_rows(std::int64_t rows, std::int64_t channels, const T* x, Acc<T>* sum, int threads) {
  using A = Acc<T>;
  // columns are shared, so that each sum has one order
  constexpr std::int64_t kColumns = 4 * simd::kWidth<A>;
  parallel_blocks(channels, kColumns, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      std::fill(sum + begin, sum + end, A{});
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* from = x + row * channels + begin;
        each_vector<A>(end - begin, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
          store(sum + begin + i, Vec<A>(load(sum + begin + i, count) + load(from + i, count)), count);
        });
      }
    });
  });
}

#define TROUPE_NORM_KERNELS(T)                                                                                         \
  template void modulated_norm_forward<T>(const std::vector<RowRun>&, std::int64_t, const T*, Table<T>, Table<T>,      \
                                          double, T*, Acc<T>*, int);                                                   \
  template void modulated_norm_backward<T>(const std::vector<RowRun>&, std::int64_t, std::int64_t, const T*, const T*, \
                                           Table<T>, const Acc<T>*, T*, Acc<T>*, Acc<T>*, int);                        \
  template void rms_norm_forward<T>(std::int64_t, std::int64_t, const T*, std::int64_t, const T*, double,              \
                                    const Rotation<T>&, T*, Acc<T>*, int);                                             \
  template void rms_norm_backward<T>(std::int64_t, std::int64_t, const T*, const T*, std::int64_t, const T*,           \
                                     const Acc<T>*, const Rotation<T>&, T*, std::int64_t, Acc<T>*, int);               \
  template void sum_rows<T>(std::int64_t, std::int64_t, const T*, Acc<T>*, int);
TROUPE_NORM_KERNELS(float)
TROUPE_NORM_KERNELS(double)
TROUPE_NORM_KERNELS(simd::Bf16)

}  // namespace troupe::kernels::cpu

// Gate and residual, tanh-GELU, and the bias of a linear layer: one read and one write of each matrix.
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

constexpr double kRoot = 1.5957691216057308;  // 2 sqrt(2 / pi): tanh(z) = 2 sigmoid(2 z) - 1
constexpr double kCube = 0.044715;

/// Whole vectors per part, so that parts differ only in where they begin.
template <class A>
constexpr std::int64_t kBlock = 64 * simd::kWidth<A>;

template <class A>
TROUPE_INLINE Vec<A> gelu_gate(Vec<A> u) {
  const Vec<A> z = u * (u * u * static_cast<A>(kRoot * kCube) + static_cast<A>(kRoot));
  return 1 / (simd::exp(-z) + 1);
}

}  // namespace

template <class T>
void gated_residual_forward(const std::vector<RowRun>& runs, std::int64_t channels, const T* x, const T* y,
                            Table<T> gate, T* out, int threads) {
  using A = Acc<T>;
  parallel(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto r = begin; r < end; ++r) {
        const auto& run = runs[static_cast<std::size_t>(r)];
        const T* g = gate.data + run.table * gate.stride;
        for (auto row = run.begin; row < run.end; ++row) {
          const auto at = row * channels;
          each_vector<A>(channels, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
            const Vec<A> gated = simd::rounded<T, A>(load(y + at + i, count) * load(g + i, count));
            store(out + at + i, Vec<A>(load(x + at + i, count) + gated), count);
          });
        }
      }
    });
  });
}

template <class T>
void gated_residual_backward(const std::vector<RowRun>& runs, std::int64_t channels, std::int64_t table_rows,
                             const T* dout, const T* y, Table<T> gate, T* dy, Acc<T>* dgate, int threads) {
  using A = Acc<T>;
  std::vector<A> parts(runs.size() * static_cast<std::size_t>(channels));
  parallel(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto r = begin; r < end; ++r) {
        const auto& run = runs[static_cast<std::size_t>(r)];
        const T* g = gate.data + run.table * gate.stride;
        A* part = parts.data() + r * channels;
        for (auto row = run.begin; row < run.end; ++row) {
          const auto at = row * channels;
          each_vector<A>(channels, [&](std::int64_t i, std::int64_t count) TROUPE_LAMBDA {
            const Vec<A> d = load(dout + at + i, count);
            store(dy + at + i, Vec<A>(d * load(g + i, count)), count);
            store(part + i, Vec<A>(load(part + i, count) + d * load(y + at + i, count)), count);
          });
        }
      }
    });
  });
  std::fill(dgate, dgate + table_rows * channels, A{});
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const A* part = parts.data() + static_cast<std::int64_t>(r) * channels;
    A* sum = dgate + runs[r].table * channels;
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += part[c];
  }
}

template <class T>
void gelu_tanh_forward(std::int64_t count, const T* u, T* y, int threads) {
  using A = Acc<T>;
  parallel_blocks(count, kBlock<A>, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      each_vector<A>(end - begin, [&](std::int64_t i, std::int64_t n) TROUPE_LAMBDA {
        const Vec<A> v = load(u + begin + i, n);
        store(y + begin + i, Vec<A>(v * gelu_gate<A>(v)), n);
      });
    });
  });
}

template <class T>
void gelu_tanh_backward(std::int64_t count, const T* dy, const T* u, T* du, int threads) {
  using A = Acc<T>;
  parallel_blocks(count, kBlock<A>, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      each_vector<A>(end - begin, [&](std::int64_t i, std::int64_t n) TROUPE_LAMBDA {
        const Vec<A> v = load(u + begin + i, n), gate = gelu_gate<A>(v);
        const Vec<A> slope = v * v * static_cast<A>(3 * kRoot * kCube) + static_cast<A>(kRoot);
        store(du + begin + i, Vec<A>(load(dy + begin + i, n) * (gate + v * slope * gate * (1 - gate))), n);
      });
    });
  });
}

template <class T, class S>
void add_bias(std::int64_t rows, std::int64_t channels, const S* x, const T* bias, T* y, int threads) {
  using A = Acc<T>;
  parallel(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    with_best_isa([&]() TROUPE_LAMBDA {
      for (auto row = begin; row < end; ++row) {
        const auto at = row * channels;
        each_vector<A>(channels, [&](std::int64_t i, std::int64_t n) TROUPE_LAMBDA {
          store(y + at + i, Vec<A>(load(x + at + i, n) + load(bias + i, n)), n);
        });
      }
    });
  });
}

#define TROUPE_ELEMENTWISE_KERNELS(T)                                                                                  \
  template void gated_residual_forward<T>(const std::vector<RowRun>&, std::int64_t, const T*, const T*, Table<T>, T*,  \
                                          int);                                                                        \
  template void gated_residual_backward<T>(const std::vector<RowRun>&, std::int64_t, std::int64_t, const T*, const T*, \
                                           Table<T>, T*, Acc<T>*, int);                                                \
  template void gelu_tanh_forward<T>(std::int64_t, const T*, T*, int);                                                 \
  template void gelu_tanh_backward<T>(std::int64_t, const T*, const T*, T*, int);                                      \
  template void add_bias<T, Acc<T>>(std::int64_t, std::int64_t, const Acc<T>*, const T*, T*, int);
TROUPE_ELEMENTWISE_KERNELS(float)
TROUPE_ELEMENTWISE_KERNELS(double)
TROUPE_ELEMENTWISE_KERNELS(simd::Bf16)
template void add_bias<simd::Bf16, simd::Bf16>(std::int64_t, std::int64_t, const simd::Bf16*, const simd::Bf16*,
                                               simd::Bf16*, int);

}  // namespace troupe::kernels::cpu

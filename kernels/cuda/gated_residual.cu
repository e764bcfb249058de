// Gate and residual. A block walks down the rows of a run with a vector of columns a thread, whose gate and whose sum
// for the gate's gradient stay in registers; four rows are on their way at once. Bound by memory: 6 bytes an element
// for bf16 in the forward and in the backward, and 4 bytes a column and run for the parts of the gate's gradient.
#include "kernels/cuda/column_block.h"
#include "kernels/cuda/gated_residual.h"
#include "kernels/cuda/part_sums.h"

namespace troupe::kernels::cuda {

namespace {

/// The thread's columns of one row of two matrices.
template <int V>
struct Pair {
  Vector<V> a, b;
};

template <int V, class T>
__global__ __launch_bounds__(kColumnThreads) void gated_residual_rows(const DeviceRun* __restrict__ runs, int channels,
                                                                      const T* __restrict__ x, const T* __restrict__ y,
                                                                      Table<T> gate, T* __restrict__ out) {
  const RowRun run = load_run(runs + blockIdx.x);
  const int column = first_column<V>();
  if (column >= channels) return;
  const auto gates = load<V>(gate.data + run.table * gate.stride + column);
  const auto read = [&](std::int64_t row) {
    return Pair<V>{load<V>(x + row * channels + column), load<V>(y + row * channels + column)};
  };
  each_row(run.begin, run.end, read, [&](std::int64_t row, const Pair<V>& in) {
    Vector<V> sum;
    // not fused in f32 either: the product is rounded
#pragma unroll
    for (int e = 0; e < V; ++e) sum.v[e] = __fadd_rn(in.a.v[e], rounded<T>(__fmul_rn(in.b.v[e], gates.v[e])));
    store<V>(out + row * channels + column, sum);
  });
}

template <int V, class T>
__global__ __launch_bounds__(kColumnThreads) void gated_residual_gradient(const DeviceRun* __restrict__ runs,
                                                                          int channels, const T* __restrict__ dout,
                                                                          const T* __restrict__ y, Table<T> gate,
                                                                          T* __restrict__ dy,
                                                                          float* __restrict__ parts) {
  const RowRun run = load_run(runs + blockIdx.x);
  const int column = first_column<V>();
  Vector<V> dgate = {};
  if (column < channels) {
    const auto gates = load<V>(gate.data + run.table * gate.stride + column);
    const auto read = [&](std::int64_t row) {
      return Pair<V>{load<V>(dout + row * channels + column), load<V>(y + row * channels + column)};
    };
    each_row(run.begin, run.end, read, [&](std::int64_t row, const Pair<V>& in) {
      Vector<V> product;
#pragma unroll
      for (int e = 0; e < V; ++e) {
        product.v[e] = in.a.v[e] * gates.v[e];
        dgate.v[e] += in.a.v[e] * in.b.v[e];
      }
      store<V>(dy + row * channels + column, product);
    });
  }
  store_sums<V>(parts + std::int64_t{blockIdx.x} * channels, column, channels, dgate);
}

}  // namespace

template <class T>
cudaError_t launch_gated_residual_forward(const DeviceRuns& runs, std::int64_t channels, const T* x, const T* y,
                                          Table<T> gate, T* out, cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  if (!takes(runs.count, channels)) return cudaErrorInvalidValue;
  if (runs.count <= 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  if (channels % kV == 0 && gate.stride % kV == 0 && are_aligned(x, y, gate.data, out)) {
    const ColumnShape<kV> shape(runs.count, channels);
    gated_residual_rows<kV><<<shape.grid, shape.threads, 0, stream>>>(runs.runs, n, x, y, gate, out);
  } else {
    const ColumnShape<1> shape(runs.count, channels);
    gated_residual_rows<1><<<shape.grid, shape.threads, 0, stream>>>(runs.runs, n, x, y, gate, out);
  }
  return cudaGetLastError();
}

std::int64_t gated_residual_backward_scratch_bytes(std::int64_t runs, std::int64_t channels) {
  return runs * channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T>
cudaError_t launch_gated_residual_backward(const DeviceRuns& runs, std::int64_t channels, const T* dout, const T* y,
                                           Table<T> gate, T* dy, float* dgate, void* scratch, cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  if (!takes(runs.count, channels) || runs.table_rows > kMaxBlocks) return cudaErrorInvalidValue;
  if (channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  auto* parts = static_cast<float*>(scratch);
  if (runs.count > 0) {
    if (channels % kV == 0 && gate.stride % kV == 0 && are_aligned(dout, y, gate.data, dy, parts)) {
      const ColumnShape<kV> shape(runs.count, channels);
      gated_residual_gradient<kV><<<shape.grid, shape.threads, 0, stream>>>(runs.runs, n, dout, y, gate, dy, parts);
    } else {
      const ColumnShape<1> shape(runs.count, channels);
      gated_residual_gradient<1><<<shape.grid, shape.threads, 0, stream>>>(runs.runs, n, dout, y, gate, dy, parts);
    }
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return launch_part_sums(parts, runs.count, runs.first, runs.table_rows, channels, dgate, nullptr, stream);
}

#define TROUPE_GATED_RESIDUAL(T)                                                                                       \
  template cudaError_t launch_gated_residual_forward<T>(const DeviceRuns&, std::int64_t, const T*, const T*, Table<T>, \
                                                        T*, cudaStream_t);                                             \
  template cudaError_t launch_gated_residual_backward<T>(const DeviceRuns&, std::int64_t, const T*, const T*,          \
                                                         Table<T>, T*, float*, void*, cudaStream_t);
TROUPE_GATED_RESIDUAL(float)
TROUPE_GATED_RESIDUAL(simd::Bf16)
#undef TROUPE_GATED_RESIDUAL

}  // namespace troupe::kernels::cuda

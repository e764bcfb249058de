// One modulation of a block. A table has a row a sample or a frame, so these are small: a block walks down four table
// rows with a vector of columns a thread. Bound by the launch for most tables, by memory for the largest: 4 bytes an
// element for bf16 forward, 12 for the f32 sum backward, and base's gradient as row_sum has it.
#include "kernels/cuda/column_block.h"
#include "kernels/cuda/modulation.h"
#include "kernels/cuda/row_sum.h"

namespace troupe::kernels::cuda {

namespace {

/// Rows of a block.
constexpr std::int64_t kTableRows = 4;

template <int V, class T>
__global__ __launch_bounds__(kColumnThreads) void modulation_rows(std::int64_t table_rows, int channels,
                                                                  const T* __restrict__ base,
                                                                  const T* __restrict__ rows, std::int64_t row_stride,
                                                                  bool plus_one, T* __restrict__ out) {
  const int column = first_column<V>();
  if (column >= channels) return;
  const auto learned = load<V>(base + column);
  const std::int64_t begin = blockIdx.x * kTableRows;
  const std::int64_t end = begin + kTableRows < table_rows ? begin + kTableRows : table_rows;
  const auto read = [&](std::int64_t row) { return load<V>(rows + row * row_stride + column); };
  each_row(begin, end, read, [&](std::int64_t row, const Vector<V>& in) {
    Vector<V> sum;
#pragma unroll
    for (int e = 0; e < V; ++e) {
      const float x = rounded<T>(in.v[e] + learned.v[e]);
      sum.v[e] = plus_one ? x + 1.0F : x;
    }
    store<V>(out + row * channels + column, sum);
  });
}

template <int V>
__global__ __launch_bounds__(kColumnThreads) void modulation_add_rows(std::int64_t table_rows, int channels,
                                                                      const float* __restrict__ d_table, float* d_rows,
                                                                      std::int64_t d_rows_stride) {
  const int column = first_column<V>();
  if (column >= channels) return;
  const std::int64_t begin = blockIdx.x * kTableRows;
  const std::int64_t end = begin + kTableRows < table_rows ? begin + kTableRows : table_rows;
  const auto read = [&](std::int64_t row) { return load<V>(d_table + row * channels + column); };
  each_row(begin, end, read, [&](std::int64_t row, const Vector<V>& in) {
    float* at = d_rows + row * d_rows_stride + column;
    auto sum = load<V, Access::also_written>(at);
#pragma unroll
    for (int e = 0; e < V; ++e) sum.v[e] += in.v[e];
    store<V>(at, sum);
  });
}

cudaError_t add_rows(std::int64_t groups, std::int64_t table_rows, std::int64_t channels, const float* d_table,
                     float* d_rows, std::int64_t d_rows_stride, cudaStream_t stream) {
  constexpr int kV = kVectorOf<float>;
  const int n = static_cast<int>(channels);
  if (channels % kV == 0 && d_rows_stride % kV == 0 && are_aligned(d_table, d_rows)) {
    const ColumnShape<kV> shape(groups, channels);
    modulation_add_rows<kV><<<shape.grid, shape.threads, 0, stream>>>(table_rows, n, d_table, d_rows, d_rows_stride);
  } else {
    const ColumnShape<1> shape(groups, channels);
    modulation_add_rows<1><<<shape.grid, shape.threads, 0, stream>>>(table_rows, n, d_table, d_rows, d_rows_stride);
  }
  return cudaGetLastError();
}

}  // namespace

template <class T>
cudaError_t launch_modulation_forward(std::int64_t table_rows, std::int64_t channels, const T* base, const T* rows,
                                      std::int64_t row_stride, bool plus_one, T* out, cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  const std::int64_t groups = table_rows <= 0 ? 0 : parts_of(table_rows, kTableRows);
  if (!takes(groups, channels)) return cudaErrorInvalidValue;
  if (groups == 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  if (channels % kV == 0 && row_stride % kV == 0 && are_aligned(base, rows, out)) {
    const ColumnShape<kV> shape(groups, channels);
    modulation_rows<kV><<<shape.grid, shape.threads, 0, stream>>>(table_rows, n, base, rows, row_stride, plus_one, out);
  } else {
    const ColumnShape<1> shape(groups, channels);
    modulation_rows<1><<<shape.grid, shape.threads, 0, stream>>>(table_rows, n, base, rows, row_stride, plus_one, out);
  }
  return cudaGetLastError();
}

std::int64_t modulation_backward_scratch_bytes(std::int64_t table_rows, std::int64_t channels) {
  return row_sum_scratch_bytes(table_rows, channels);
}

cudaError_t launch_modulation_backward(std::int64_t table_rows, std::int64_t channels, const float* d_table,
                                       float* d_base, float* d_rows, std::int64_t d_rows_stride, void* scratch,
                                       cudaStream_t stream) {
  const std::int64_t groups = table_rows <= 0 ? 0 : parts_of(table_rows, kTableRows);
  if (!takes(groups, channels)) return cudaErrorInvalidValue;
  if (channels == 0) return cudaSuccess;
  if (d_table == nullptr) {
    if (d_base == nullptr) return cudaSuccess;
    return cudaMemsetAsync(d_base, 0, static_cast<std::size_t>(channels) * sizeof(float), stream);
  }
  if (d_base != nullptr) {
    const auto error = launch_row_sum(table_rows, channels, d_table, d_base, scratch, stream);
    if (error != cudaSuccess) return error;
  }
  if (d_rows == nullptr || groups == 0) return cudaSuccess;
  return add_rows(groups, table_rows, channels, d_table, d_rows, d_rows_stride, stream);
}

template cudaError_t launch_modulation_forward<float>(std::int64_t, std::int64_t, const float*, const float*,
                                                      std::int64_t, bool, float*, cudaStream_t);
template cudaError_t launch_modulation_forward<simd::Bf16>(std::int64_t, std::int64_t, const simd::Bf16*,
                                                           const simd::Bf16*, std::int64_t, bool, simd::Bf16*,
                                                           cudaStream_t);

}  // namespace troupe::kernels::cuda

// Sums of columns. A block walks down 64 rows with a vector of columns a thread, whose sums stay in registers, four
// rows on their way at once; a second kernel adds these parts in order. Bound by memory: one read of the matrix, and
// for bf16 1/16 of that for the parts, written and read.
#include "kernels/cuda/column_block.h"
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/row_sum.h"

namespace troupe::kernels::cuda {

namespace {

constexpr std::int64_t kPartRows = 64;

template <int V, class T>
__global__ __launch_bounds__(kColumnThreads) void row_sum_parts(std::int64_t rows, int channels,
                                                                const T* __restrict__ x, float* __restrict__ parts) {
  const int column = first_column<V>();
  const std::int64_t begin = blockIdx.x * kPartRows, end = begin + kPartRows < rows ? begin + kPartRows : rows;
  Vector<V> sum = {};
  if (column < channels) {
    const auto read = [&](std::int64_t row) { return load<V>(x + row * channels + column); };
    each_row(begin, end, read, [&](std::int64_t, const Vector<V>& in) {
#pragma unroll
      for (int e = 0; e < V; ++e) sum.v[e] += in.v[e];
    });
  }
  store_sums<V>(parts + std::int64_t{blockIdx.x} * channels, column, channels, sum);
}

}  // namespace

std::int64_t row_sum_scratch_bytes(std::int64_t rows, std::int64_t channels) {
  return parts_of(rows, kPartRows) * channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T>
cudaError_t launch_row_sum(std::int64_t rows, std::int64_t channels, const T* x, float* sum, void* scratch,
                           cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  const std::int64_t count = rows <= 0 ? 0 : parts_of(rows, kPartRows);
  if (!takes(count, channels)) return cudaErrorInvalidValue;
  if (channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  auto* parts = static_cast<float*>(scratch);
  if (count > 0) {
    if (channels % kV == 0 && are_aligned(x, parts)) {
      const ColumnShape<kV> shape(count, channels);
      row_sum_parts<kV><<<shape.grid, shape.threads, 0, stream>>>(rows, n, x, parts);
    } else {
      const ColumnShape<1> shape(count, channels);
      row_sum_parts<1><<<shape.grid, shape.threads, 0, stream>>>(rows, n, x, parts);
    }
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return launch_part_sums(parts, count, nullptr, 1, channels, sum, nullptr, stream);
}

template cudaError_t launch_row_sum<float>(std::int64_t, std::int64_t, const float*, float*, void*, cudaStream_t);
template cudaError_t launch_row_sum<simd::Bf16>(std::int64_t, std::int64_t, const simd::Bf16*, float*, void*,
                                                cudaStream_t);

}  // namespace troupe::kernels::cuda

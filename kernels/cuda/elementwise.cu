// Sums, products and conversions. A vector of 16 bytes a thread, one pass; the bias walks down sixteen rows with the
// bias of its columns in registers. Bound by memory: each matrix is read or written once (6 bytes an element for a sum
// of two bf16 tensors, 6 for a conversion, 4 or 6 for a bias).
#include "kernels/cuda/column_block.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map_elements.h"

namespace troupe::kernels::cuda {

namespace {

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
/// Not fused in f32 either: the product is rounded.
template <class T>
struct AddScaled {
  float scale;
  __device__ float operator()(float a, float b) const { return __fadd_rn(a, rounded<T>(__fmul_rn(b, scale))); }
};
struct Scale {
  float scale;
  __device__ float operator()(float x) const { return x * scale; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};

template <int V, class T>
__device__ void add_at(T* sum, const T* part) {
  store<V>(sum, mapped<V>(Add{}, load<V, Access::also_written>(sum), load<V>(part)));
}

template <int V, class T>
__global__ __launch_bounds__(kMapThreads) void add_to_elements(std::int64_t count, std::int64_t vectors, T* sum,
                                                               const T* __restrict__ part) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kMapThreads + threadIdx.x;
  if (i < vectors) return add_at<V>(sum + i * V, part + i * V);
  const std::int64_t at = vectors * V + (i - vectors);
  if (at < count) add_at<1>(sum + at, part + at);
}

/// Rows of a block.
constexpr std::int64_t kBiasRows = 16;

/// x and y may be the same memory.
template <int V, class T, class S>
__global__ __launch_bounds__(kColumnThreads) void add_bias_rows(std::int64_t rows, int channels, const S* x,
                                                                const T* __restrict__ bias, T* y) {
  const int column = first_column<V>();
  if (column >= channels) return;
  const auto added = load<V>(bias + column);
  const std::int64_t begin = blockIdx.x * kBiasRows, end = begin + kBiasRows < rows ? begin + kBiasRows : rows;
  const auto read = [&](std::int64_t row) { return load<V, Access::also_written>(x + row * channels + column); };
  each_row(begin, end, read, [&](std::int64_t row, const Vector<V>& in) {
    store<V>(y + row * channels + column, mapped<V>(Add{}, in, added));
  });
}

}  // namespace

template <class T>
cudaError_t launch_add(std::int64_t count, const T* a, const T* b, T* out, cudaStream_t stream) {
  return launch_map(count, Add{}, stream, out, a, b);
}

template <class T>
cudaError_t launch_add_scaled(std::int64_t count, const T* a, const T* b, double scale, T* out, cudaStream_t stream) {
  return launch_map(count, AddScaled<T>{static_cast<float>(scale)}, stream, out, a, b);
}

template <class T>
cudaError_t launch_scale(std::int64_t count, const T* x, double scale, T* out, cudaStream_t stream) {
  return launch_map(count, Scale{static_cast<float>(scale)}, stream, out, x);
}

template <class T>
cudaError_t launch_add_to(std::int64_t count, T* sum, const T* part, cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  if (count <= 0) return cudaSuccess;
  const MapShape shape(count, kV, are_aligned(sum, part));
  if (shape.blocks > kMaxBlocks) return cudaErrorInvalidValue;
  add_to_elements<kV><<<static_cast<unsigned>(shape.blocks), kMapThreads, 0, stream>>>(count, shape.vectors, sum, part);
  return cudaGetLastError();
}

template <class To, class From>
cudaError_t launch_convert(std::int64_t count, const From* from, To* to, cudaStream_t stream) {
  return launch_map(count, Same{}, stream, to, from);
}

template <class T, class S>
cudaError_t launch_add_bias(std::int64_t rows, std::int64_t channels, const S* x, const T* bias, T* y,
                            cudaStream_t stream) {
  constexpr int kV = kVectorOf<T, S>;
  const std::int64_t groups = rows <= 0 ? 0 : parts_of(rows, kBiasRows);
  if (!takes(groups, channels)) return cudaErrorInvalidValue;
  if (groups == 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  if (channels % kV == 0 && are_aligned(x, bias, y)) {
    const ColumnShape<kV> shape(groups, channels);
    add_bias_rows<kV><<<shape.grid, shape.threads, 0, stream>>>(rows, n, x, bias, y);
  } else {
    const ColumnShape<1> shape(groups, channels);
    add_bias_rows<1><<<shape.grid, shape.threads, 0, stream>>>(rows, n, x, bias, y);
  }
  return cudaGetLastError();
}

#define TROUPE_ELEMENTWISE(T)                                                                            \
  template cudaError_t launch_add<T>(std::int64_t, const T*, const T*, T*, cudaStream_t);                \
  template cudaError_t launch_add_scaled<T>(std::int64_t, const T*, const T*, double, T*, cudaStream_t); \
  template cudaError_t launch_scale<T>(std::int64_t, const T*, double, T*, cudaStream_t);                \
  template cudaError_t launch_add_to<T>(std::int64_t, T*, const T*, cudaStream_t);                       \
  template cudaError_t launch_add_bias<T, T>(std::int64_t, std::int64_t, const T*, const T*, T*, cudaStream_t);
TROUPE_ELEMENTWISE(float)
TROUPE_ELEMENTWISE(simd::Bf16)
#undef TROUPE_ELEMENTWISE
template cudaError_t launch_convert<simd::Bf16, float>(std::int64_t, const float*, simd::Bf16*, cudaStream_t);
template cudaError_t launch_convert<float, simd::Bf16>(std::int64_t, const simd::Bf16*, float*, cudaStream_t);
template cudaError_t launch_add_bias<simd::Bf16, float>(std::int64_t, std::int64_t, const float*, const simd::Bf16*,
                                                        simd::Bf16*, cudaStream_t);

}  // namespace troupe::kernels::cuda

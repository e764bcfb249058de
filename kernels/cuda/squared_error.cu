// The weighted squared error. A warp a row, since a row of a loss has as many channels as an action or a patch has
// numbers (7 to 256), four elements a lane at a time: 8 bytes of bf16 beside 16 of f32. Bound by memory: 6 bytes an
// element for bf16 and c by rows, 8 with dx; once a step, so a small part of it.
#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/squared_error.h"
#include "kernels/cuda/vectors.h"
#include "kernels/cuda/weighted_sum.h"

namespace troupe::kernels::cuda {

namespace {

constexpr int kWarps = 8;
/// Of all kernels here: x may be bf16, the rest is f32.
constexpr int kVector = 4;

/// What is read of V elements: c and x - target.
template <int V>
struct Weighted {
  Vector<V> c, d;
};

/// body(column, elements) for the lane's vectors of one row. Rows are whole vectors.
template <int V, class T, class F>
__device__ void each_weighted(std::int64_t row, int channels, const T* x, const float* target, const float* c,
                              bool of_elements, const F& body) {
  const std::int64_t at = row * channels;
  const float of_row = of_elements ? 0.0F : __ldg(c + row);
  for (int i = static_cast<int>(threadIdx.x) % kWarp * V; i < channels; i += kWarp * V) {
    const auto a = load<V>(x + at + i), b = load<V>(target + at + i);
    Weighted<V> in;
    if (of_elements) in.c = load<V>(c + at + i);
#pragma unroll
    for (int e = 0; e < V; ++e) {
      in.d.v[e] = a.v[e] - b.v[e];
      if (!of_elements) in.c.v[e] = of_row;
    }
    body(i, in);
  }
}

__device__ std::int64_t warp_row() { return std::int64_t{blockIdx.x} * kWarps + static_cast<int>(threadIdx.x) / kWarp; }

template <int V, class T>
__global__ __launch_bounds__(kWarps* kWarp) void squared_error_rows(std::int64_t rows, int channels,
                                                                    const T* __restrict__ x,
                                                                    const float* __restrict__ target,
                                                                    const float* __restrict__ c, bool of_elements,
                                                                    float* __restrict__ row_sums) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;  // the same for a warp
  float sum = 0.0F;
  each_weighted<V>(row, channels, x, target, c, of_elements, [&](int, const Weighted<V>& in) {
#pragma unroll
    for (int e = 0; e < V; ++e) sum += in.c.v[e] * in.d.v[e] * in.d.v[e];
  });
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) row_sums[row] = sum;
}

template <int V, class T>
__global__ __launch_bounds__(kWarps* kWarp) void squared_error_gradient(
    std::int64_t rows, int channels, const T* __restrict__ x, const float* __restrict__ target,
    const float* __restrict__ c, bool of_elements, const float* __restrict__ dloss, T* __restrict__ dx) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  const float scale = 2.0F * __ldg(dloss);
  each_weighted<V>(row, channels, x, target, c, of_elements, [&](int column, const Weighted<V>& in) {
    Vector<V> out;
#pragma unroll
    for (int e = 0; e < V; ++e) out.v[e] = in.c.v[e] * in.d.v[e] * scale;
    store<V>(dx + row * channels + column, out);
  });
}

unsigned blocks_of(std::int64_t rows) { return static_cast<unsigned>(parts_of(rows, kWarps)); }

bool is_valid(std::int64_t rows, std::int64_t channels) {
  return takes(rows <= 0 ? 0 : parts_of(rows, kWarps), channels);
}

}  // namespace

template <class T>
cudaError_t launch_squared_error_forward(std::int64_t rows, std::int64_t channels, const T* x, const float* target,
                                         const float* c, bool of_elements, float* row_sums, float* loss,
                                         cudaStream_t stream) {
  if (!is_valid(rows, channels)) return cudaErrorInvalidValue;
  const int n = static_cast<int>(channels);
  if (rows > 0) {
    if (channels % kVector == 0 && are_aligned(x, target, of_elements ? c : nullptr))
      squared_error_rows<kVector>
          <<<blocks_of(rows), kWarps * kWarp, 0, stream>>>(rows, n, x, target, c, of_elements, row_sums);
    else
      squared_error_rows<1>
          <<<blocks_of(rows), kWarps * kWarp, 0, stream>>>(rows, n, x, target, c, of_elements, row_sums);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return launch_total(rows, row_sums, loss, stream);
}

template <class T>
cudaError_t launch_squared_error_backward(std::int64_t rows, std::int64_t channels, const T* x, const float* target,
                                          const float* c, bool of_elements, const float* dloss, T* dx,
                                          cudaStream_t stream) {
  if (!is_valid(rows, channels)) return cudaErrorInvalidValue;
  if (rows <= 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  if (channels % kVector == 0 && are_aligned(x, target, of_elements ? c : nullptr, dx))
    squared_error_gradient<kVector>
        <<<blocks_of(rows), kWarps * kWarp, 0, stream>>>(rows, n, x, target, c, of_elements, dloss, dx);
  else
    squared_error_gradient<1>
        <<<blocks_of(rows), kWarps * kWarp, 0, stream>>>(rows, n, x, target, c, of_elements, dloss, dx);
  return cudaGetLastError();
}

#define TROUPE_SQUARED_ERROR(T)                                                                             \
  template cudaError_t launch_squared_error_forward<T>(std::int64_t, std::int64_t, const T*, const float*,  \
                                                       const float*, bool, float*, float*, cudaStream_t);   \
  template cudaError_t launch_squared_error_backward<T>(std::int64_t, std::int64_t, const T*, const float*, \
                                                        const float*, bool, const float*, T*, cudaStream_t);
TROUPE_SQUARED_ERROR(float)
TROUPE_SQUARED_ERROR(simd::Bf16)
#undef TROUPE_SQUARED_ERROR

}  // namespace troupe::kernels::cuda

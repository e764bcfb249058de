// Copies of rows that lie apart: parts of a sequence, columns of a joined product, channels side by side, new keys
// behind those that a sample sees. A block has one row and a vector of 16 bytes of the wider type a thread. Bound by
// memory: one read and one write.
#include "kernels/cuda/copy_rows.h"
#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/vectors.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 128;

template <int V, class To, class From>
__global__ __launch_bounds__(kThreads) void copy_row(std::int64_t rows, int channels, BlockOfRows<const From> from,
                                                     BlockOfRows<To> to) {
  const int column = (static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x)) * V;
  if (column >= channels) return;
  const std::int64_t sample = blockIdx.x / rows, row = blockIdx.x % rows;
  Vector<V> values = {};
  if (from.data != nullptr) values = load<V>(from.data + sample * from.sample_stride + row * from.row_stride + column);
  store<V>(to.data + sample * to.sample_stride + row * to.row_stride + column, values);
}

template <int V, class T>
__global__ __launch_bounds__(kThreads) void append_row(std::int64_t rows, int channels, BlockOfRows<const T> from,
                                                       BlockOfRows<T> to, const std::int64_t* key_rows) {
  const int column = (static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x)) * V;
  if (column >= channels) return;
  const std::int64_t sample = blockIdx.x / rows, row = blockIdx.x % rows;
  const std::int64_t end = __ldg(reinterpret_cast<const long long*>(key_rows) + 3 * sample + 1);
  store<V>(to.data + (end - rows + row) * to.row_stride + column,
           load<V>(from.data + sample * from.sample_stride + row * from.row_stride + column));
}

/// Whether all are whole vectors.
template <int V, class... Count>
bool are_whole(Count... counts) {
  return ((counts % V == 0) && ...);
}

/// The grid of such a kernel with V channels a thread.
template <int V>
dim3 grid_of(std::int64_t rows, std::int64_t channels) {
  return {static_cast<unsigned>(rows), static_cast<unsigned>(parts_of(channels, V * kThreads))};
}

}  // namespace

template <class To, class From>
cudaError_t launch_copy_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                             const BlockOfRows<const From>& from, const BlockOfRows<To>& to, cudaStream_t stream) {
  constexpr int kV = kVectorOf<To, From>;
  if (!takes(samples * rows, channels)) return cudaErrorInvalidValue;
  if (samples <= 0 || rows <= 0 || channels == 0) return cudaSuccess;
  const bool wide = are_whole<kV>(channels, from.sample_stride, from.row_stride, to.sample_stride, to.row_stride) &&
                    are_aligned(from.data, to.data);
  const int n = static_cast<int>(channels);
  if (wide)
    copy_row<kV><<<grid_of<kV>(samples * rows, channels), kThreads, 0, stream>>>(rows, n, from, to);
  else
    copy_row<1><<<grid_of<1>(samples * rows, channels), kThreads, 0, stream>>>(rows, n, from, to);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_append_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                               const BlockOfRows<const T>& from, const BlockOfRows<T>& to, const std::int64_t* key_rows,
                               cudaStream_t stream) {
  constexpr int kV = kVectorOf<T>;
  if (!takes(samples * rows, channels)) return cudaErrorInvalidValue;
  if (samples <= 0 || rows <= 0 || channels == 0) return cudaSuccess;
  const bool wide =
      are_whole<kV>(channels, from.sample_stride, from.row_stride, to.row_stride) && are_aligned(from.data, to.data);
  const int n = static_cast<int>(channels);
  if (wide)
    append_row<kV><<<grid_of<kV>(samples * rows, channels), kThreads, 0, stream>>>(rows, n, from, to, key_rows);
  else
    append_row<1><<<grid_of<1>(samples * rows, channels), kThreads, 0, stream>>>(rows, n, from, to, key_rows);
  return cudaGetLastError();
}

#define TROUPE_APPEND_ROWS(T)                                                                                       \
  template cudaError_t launch_append_rows<T>(std::int64_t, std::int64_t, std::int64_t, const BlockOfRows<const T>&, \
                                             const BlockOfRows<T>&, const std::int64_t*, cudaStream_t);
TROUPE_APPEND_ROWS(float)
TROUPE_APPEND_ROWS(simd::Bf16)
#undef TROUPE_APPEND_ROWS

#define TROUPE_COPY_ROWS(To, From)                 \
  template cudaError_t launch_copy_rows<To, From>( \
      std::int64_t, std::int64_t, std::int64_t, const BlockOfRows<const From>&, const BlockOfRows<To>&, cudaStream_t);
TROUPE_COPY_ROWS(float, float)
TROUPE_COPY_ROWS(float, simd::Bf16)
TROUPE_COPY_ROWS(simd::Bf16, float)
TROUPE_COPY_ROWS(simd::Bf16, simd::Bf16)
#undef TROUPE_COPY_ROWS

}  // namespace troupe::kernels::cuda

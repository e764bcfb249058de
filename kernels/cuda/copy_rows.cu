// Copies of rows that lie apart: parts of a sequence, columns of a joined product, channels side by side. A block has
// one row and a vector of 16 bytes of the wider type a thread. Bound by memory: one read and one write.
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

}  // namespace

template <class To, class From>
cudaError_t launch_copy_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                             const BlockOfRows<const From>& from, const BlockOfRows<To>& to, cudaStream_t stream) {
  constexpr int kV = kVectorOf<To, From>;
  if (!takes(samples * rows, channels)) return cudaErrorInvalidValue;
  if (samples <= 0 || rows <= 0 || channels == 0) return cudaSuccess;
  const auto is_whole = [](std::int64_t count) { return count % kV == 0; };
  const bool wide = is_whole(channels) && is_whole(from.sample_stride) && is_whole(from.row_stride) &&
                    is_whole(to.sample_stride) && is_whole(to.row_stride) && are_aligned(from.data, to.data);
  const auto blocks = static_cast<unsigned>(samples * rows);
  const int n = static_cast<int>(channels);
  if (wide)
    copy_row<kV><<<dim3(blocks, static_cast<unsigned>(parts_of(channels, kV * kThreads))), kThreads, 0, stream>>>(
        rows, n, from, to);
  else
    copy_row<1>
        <<<dim3(blocks, static_cast<unsigned>(parts_of(channels, kThreads))), kThreads, 0, stream>>>(rows, n, from, to);
  return cudaGetLastError();
}

#define TROUPE_COPY_ROWS(To, From)                 \
  template cudaError_t launch_copy_rows<To, From>( \
      std::int64_t, std::int64_t, std::int64_t, const BlockOfRows<const From>&, const BlockOfRows<To>&, cudaStream_t);
TROUPE_COPY_ROWS(float, float)
TROUPE_COPY_ROWS(float, simd::Bf16)
TROUPE_COPY_ROWS(simd::Bf16, float)
TROUPE_COPY_ROWS(simd::Bf16, simd::Bf16)
#undef TROUPE_COPY_ROWS

}  // namespace troupe::kernels::cuda

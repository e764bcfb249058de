// Sums of parts in their order. A sum over a thousand parts is a thousand additions one after the other, and a thread
// that loads each as it adds it would wait for memory a hundred times. So a block has 32 columns: eight warps load 64
// parts at once into shared memory, and the first warp, a column a lane, adds them in order while the others load the
// next 64. Bound by the latency of memory for few parts and by its bandwidth for many: one read of the parts (1/16 of
// the rows' bytes for bf16 rows of which 32 make a part) and one write of the sums.
#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/part_sums.h"

namespace troupe::kernels::cuda {

namespace {

constexpr int kWarps = 8;
/// Loads of a thread before a barrier.
constexpr int kLoads = 8;
constexpr int kTile = kWarps * kLoads;

__global__ __launch_bounds__(kWarps* kWarp) void add_parts(const float* __restrict__ parts, std::int64_t num_parts,
                                                           const std::int32_t* __restrict__ first, int channels,
                                                           float* out, float* second_out) {
  __shared__ float tiles[2][kTile][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.y) * kWarp + lane;
  const bool has_column = column < channels;
  const std::int64_t table_row = blockIdx.x;
  const std::int64_t begin = first == nullptr ? 0 : __ldg(first + table_row);
  const std::int64_t end = first == nullptr ? num_parts : __ldg(first + table_row + 1);
  if (blockIdx.z == 1) {
    parts += num_parts * channels;
    out = second_out;
  }
  float sum = 0.0F;
  int buffer = 0;
  for (std::int64_t at = begin; at < end; at += kTile) {
    // parts behind the end cost their warp nothing
    const std::int64_t left = end - at - warp;
    float held[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (i * kWarps < left) held[i] = has_column ? __ldg(parts + (at + i * kWarps + warp) * channels + column) : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (i * kWarps < left) tiles[buffer][i * kWarps + warp][lane] = held[i];
    }
    // one barrier a tile is enough: a warp writes this half again only behind the next barrier, where the first warp
    // arrives when it has added all of this half
    __syncthreads();
    if (warp == 0) {
      const int count = static_cast<int>(end - at < kTile ? end - at : kTile);
#pragma unroll 8
      for (int i = 0; i < count; ++i) sum += tiles[buffer][i][lane];
    }
    buffer ^= 1;
  }
  if (warp == 0 && has_column) out[table_row * channels + column] = sum;
}

}  // namespace

cudaError_t launch_part_sums(const float* parts, std::int64_t num_parts, const std::int32_t* first,
                             std::int64_t table_rows, std::int64_t channels, float* out, float* second_out,
                             cudaStream_t stream) {
  if (!takes(table_rows, channels)) return cudaErrorInvalidValue;
  if (table_rows <= 0 || channels == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(table_rows), static_cast<unsigned>(parts_of(channels, kWarp)),
                  second_out == nullptr ? 1 : 2);
  add_parts<<<grid, kWarps * kWarp, 0, stream>>>(parts, num_parts, first, static_cast<int>(channels), out, second_out);
  return cudaGetLastError();
}

}  // namespace troupe::kernels::cuda

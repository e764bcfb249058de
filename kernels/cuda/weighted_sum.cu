// Sums to one number in f64. Blocks of 4,096 products, one f64 each, then one block over these; a single block could
// keep only one of 132 multiprocessors busy. Bound by memory, 8 bytes an element; the last block is bound by latency.
#include "kernels/cuda/map_elements.h"
#include "kernels/cuda/weighted_sum.h"

namespace troupe::kernels::cuda {

namespace {

constexpr int kSumThreads = 256;
/// Products of a block.
constexpr std::int64_t kBlock = 4096;
constexpr int kTotalThreads = 1024;

/// The sum over a block, in its first thread. `partials` has one place for each warp and is written once.
__device__ double block_total(double x, double* partials) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  x = warp_sum(x);
  if (lane == 0) partials[warp] = x;
  __syncthreads();
  return warp_sum(lane < static_cast<int>(blockDim.x) / kWarp ? partials[lane] : 0.0);
}

template <class A>
__global__ __launch_bounds__(kTotalThreads) void add_all(std::int64_t count, const A* __restrict__ values,
                                                         float* __restrict__ sum) {
  __shared__ double partials[kTotalThreads / kWarp];
  double mine = 0.0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < count; i += kTotalThreads) mine += static_cast<double>(__ldg(values + i));
  const double total = block_total(mine, partials);
  if (threadIdx.x == 0) *sum = static_cast<float>(total);
}

template <int V>
__global__ __launch_bounds__(kSumThreads) void weighted_sum_parts(std::int64_t count, const float* __restrict__ x,
                                                                  const float* __restrict__ c,
                                                                  double* __restrict__ parts) {
  __shared__ double partials[kSumThreads / kWarp];
  const std::int64_t begin = blockIdx.x * kBlock, end = begin + kBlock < count ? begin + kBlock : count;
  double mine = 0.0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x * V; i < end; i += kSumThreads * V) {
    const auto a = load<V>(c + i), b = load<V>(x + i);
#pragma unroll
    for (int e = 0; e < V; ++e) mine += static_cast<double>(a.v[e] * b.v[e]);
  }
  const double total = block_total(mine, partials);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

template <class A>
cudaError_t enqueue_total(std::int64_t count, const A* values, float* sum, cudaStream_t stream) {
  add_all<<<1, threads_for(count, kTotalThreads), 0, stream>>>(count, values, sum);
  return cudaGetLastError();
}

/// Reads the factor where it lies.
struct TimesNumber {
  const float* number;
  __device__ float operator()(float c) const { return c * __ldg(number); }
};

}  // namespace

cudaError_t launch_total(std::int64_t count, const float* values, float* sum, cudaStream_t stream) {
  return enqueue_total(count, values, sum, stream);
}
cudaError_t launch_total(std::int64_t count, const double* values, float* sum, cudaStream_t stream) {
  return enqueue_total(count, values, sum, stream);
}

std::int64_t weighted_sum_scratch_bytes(std::int64_t count) {
  return parts_of(count, kBlock) * static_cast<std::int64_t>(sizeof(double));
}

cudaError_t launch_weighted_sum_forward(std::int64_t count, const float* x, const float* c, float* sum, void* scratch,
                                        cudaStream_t stream) {
  const std::int64_t blocks = count <= 0 ? 0 : parts_of(count, kBlock);
  if (blocks > kMaxBlocks) return cudaErrorInvalidValue;
  auto* parts = static_cast<double*>(scratch);
  if (blocks > 0) {
    // whole vectors alone: the tail of an odd count takes the narrow form for all
    if (count % 4 == 0 && are_aligned(x, c))
      weighted_sum_parts<4><<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(count, x, c, parts);
    else
      weighted_sum_parts<1><<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(count, x, c, parts);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return launch_total(blocks, parts, sum, stream);
}

cudaError_t launch_weighted_sum_backward(std::int64_t count, const float* c, const float* dsum, float* dx,
                                         cudaStream_t stream) {
  return launch_map(count, TimesNumber{dsum}, stream, dx, c);
}

}  // namespace troupe::kernels::cuda

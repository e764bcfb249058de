// What an update does to flat shards: AdamW with its bf16 copy, a moving average, the sum of squares of a gradient, the
// sum over ranks. Bound by memory: AdamW moves 30 bytes a parameter (reads p, m, v and g, writes p, m, v and the copy),
// an average 12, the norm reads 4, a sum over R ranks reads 4 R and writes 4. Compiled without contraction: every
// product and sum rounds as on the CPU, so that both give the same bits.
#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/vectors.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256, kVector = 4;

template <class Moment, int V>
__device__ void update_at(std::int64_t i, float* param, Moment* m, Moment* v, const float* grad, simd::Bf16* published,
                          const AdamWUpdate& u, float scale) {
  Vector<V> p = load<V, Access::also_written>(param + i), mi = load<V, Access::also_written>(m + i),
            vi = load<V, Access::also_written>(v + i);
  const Vector<V> g_of = load<V>(grad + i);
#pragma unroll
  for (int e = 0; e < V; ++e) {
    const float g = g_of.v[e] * scale;
    mi.v[e] = u.b1 * mi.v[e] + u.one_minus_b1 * g;
    vi.v[e] = u.b2 * vi.v[e] + u.one_minus_b2 * g * g;
    p.v[e] = p.v[e] * u.keep - u.step * mi.v[e] / (sqrtf(vi.v[e]) / u.root + u.eps);
  }
  store(m + i, mi);
  store(v + i, vi);
  store(param + i, p);
  if (published != nullptr) store(published + i, p);
}

template <class Moment, int V>
__global__ void __launch_bounds__(kThreads)
    adamw(float* param, Moment* m, Moment* v, const float* __restrict__ grad, simd::Bf16* published, std::int64_t count,
          const AdamWUpdate* __restrict__ update, const float* __restrict__ grad_scale,
          const std::int32_t* __restrict__ skip) {
  if (*skip != 0) return;
  const AdamWUpdate u = *update;
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  if (i + V <= count) {
    update_at<Moment, V>(i, param, m, v, grad, published, u, *grad_scale);
  } else {
    for (std::int64_t one = i; one < count; ++one)
      update_at<Moment, 1>(one, param, m, v, grad, published, u, *grad_scale);
  }
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    moving_average(float* average, const float* __restrict__ x, std::int64_t count, float keep, float share,
                   const std::int32_t* __restrict__ skip) {
  if (*skip != 0) return;
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  if (i >= count) return;
  Vector<V> a = load<V, Access::also_written>(average + i);
  const Vector<V> now = load<V>(x + i);
#pragma unroll
  for (int e = 0; e < V; ++e) a.v[e] = keep * a.v[e] + share * now.v[e];
  store(average + i, a);
}

constexpr int kBlock = 1024, kBlocks = 512, kLanes = 8;
constexpr std::int64_t kRun = std::int64_t{kBlock} * kBlocks;

/// One block of threads a run; eight threads a block of values, each adds every eighth.
__global__ void __launch_bounds__(kThreads)
    square_runs(const float* __restrict__ x, std::int64_t count, double* __restrict__ runs) {
  __shared__ double sums[kBlocks];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int block = static_cast<int>(threadIdx.x) / kLanes; block < kBlocks; block += kThreads / kLanes) {
    const std::int64_t begin = std::int64_t{blockIdx.x} * kRun + std::int64_t{block} * kBlock;
    double sum = 0;
    for (int i = lane; i < kBlock && begin + i < count; i += kLanes) {
      const double value = static_cast<double>(__ldg(x + begin + i));
      sum += value * value;
    }
#pragma unroll
    for (int mask = 1; mask < kLanes; mask *= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, mask);
    if (lane == 0) sums[block] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0;
  for (int block = 0; block < kBlocks; ++block) total += sums[block];
  runs[blockIdx.x] = total;
}

__global__ void add_runs(const double* __restrict__ runs, std::int64_t count, double* __restrict__ sum) {
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += __ldg(runs + i);
  *sum = total;
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    rank_sum(float* out, const float* __restrict__ parts, std::int64_t ranks, std::int64_t count, bool add) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  if (i >= count) return;
  Vector<V> sum = load<V>(parts + i);
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    const Vector<V> part = load<V>(parts + rank * count + i);
#pragma unroll
    for (int e = 0; e < V; ++e) sum.v[e] += part.v[e];
  }
  if (add) {
    const Vector<V> before = load<V, Access::also_written>(out + i);
#pragma unroll
    for (int e = 0; e < V; ++e) sum.v[e] = before.v[e] + sum.v[e];
  }
  store(out + i, sum);
}

unsigned blocks_for(std::int64_t count, int vector) {
  return static_cast<unsigned>(parts_of(count, std::int64_t{kThreads} * vector));
}

}  // namespace

template <class Moment>
cudaError_t launch_adamw(float* param, Moment* m, Moment* v, const float* grad, simd::Bf16* published,
                         std::int64_t count, const AdamWUpdate* update, const float* grad_scale,
                         const std::int32_t* skip, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (are_aligned(param, m, v, grad, published)) {
    adamw<Moment, kVector><<<blocks_for(count, kVector), kThreads, 0, stream>>>(param, m, v, grad, published, count,
                                                                                update, grad_scale, skip);
  } else {
    adamw<Moment, 1>
        <<<blocks_for(count, 1), kThreads, 0, stream>>>(param, m, v, grad, published, count, update, grad_scale, skip);
  }
  return cudaGetLastError();
}

template cudaError_t launch_adamw(float*, float*, float*, const float*, simd::Bf16*, std::int64_t, const AdamWUpdate*,
                                  const float*, const std::int32_t*, cudaStream_t);
template cudaError_t launch_adamw(float*, simd::Bf16*, simd::Bf16*, const float*, simd::Bf16*, std::int64_t,
                                  const AdamWUpdate*, const float*, const std::int32_t*, cudaStream_t);

cudaError_t launch_moving_average(float* average, const float* x, std::int64_t count, float keep, float share,
                                  const std::int32_t* skip, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (count % kVector == 0 && are_aligned(average, x)) {
    moving_average<kVector><<<blocks_for(count, kVector), kThreads, 0, stream>>>(average, x, count, keep, share, skip);
  } else {
    moving_average<1><<<blocks_for(count, 1), kThreads, 0, stream>>>(average, x, count, keep, share, skip);
  }
  return cudaGetLastError();
}

std::int64_t sum_of_squares_scratch_bytes(std::int64_t count) {
  return parts_of(count, kRun) * static_cast<std::int64_t>(sizeof(double));
}

cudaError_t launch_sum_of_squares(const float* x, std::int64_t count, double* sum, void* scratch, cudaStream_t stream) {
  auto* runs = static_cast<double*>(scratch);
  if (count > 0) square_runs<<<static_cast<unsigned>(parts_of(count, kRun)), kThreads, 0, stream>>>(x, count, runs);
  add_runs<<<1, 1, 0, stream>>>(runs, parts_of(count, kRun), sum);
  return cudaGetLastError();
}

cudaError_t launch_rank_sum(float* out, const float* parts, std::int64_t ranks, std::int64_t count, bool add,
                            cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (count % kVector == 0 && are_aligned(out, parts)) {
    rank_sum<kVector><<<blocks_for(count, kVector), kThreads, 0, stream>>>(out, parts, ranks, count, add);
  } else {
    rank_sum<1><<<blocks_for(count, 1), kThreads, 0, stream>>>(out, parts, ranks, count, add);
  }
  return cudaGetLastError();
}

}  // namespace troupe::kernels::cuda

// What is decided of a step, by one block. Norms: each thread adds up one rank's units, and the first adds up the ranks
// in their order. Bound by latency: a few hundred numbers.
#include "kernels/cuda/step_decision.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 128;

__device__ bool is_finite(double x) { return x - x == 0; }

__global__ void __launch_bounds__(kThreads)
    step_norms(const double* __restrict__ squares, int ranks, int sharing_ranks, int units,
               const std::int32_t* __restrict__ group_of, int num_groups, double* __restrict__ sums,
               std::int32_t* __restrict__ skip) {
  __shared__ double parts[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  // the first thread's
  double total = 0, losses = 0;
  // behind the groups the losses, which replicas have of their own
  for (int g = 0; g <= num_groups; ++g) {
    const int count = g == num_groups ? ranks : sharing_ranks;
    double sum = 0;
    for (int first = 0; first < count; first += kThreads) {
      const int here = count - first < kThreads ? count - first : kThreads;
      if (thread < here) {
        const double* own = squares + std::int64_t{first + thread} * (units + 1);
        double part = g == num_groups ? own[units] : 0;
        for (int u = 0; u < units && g < num_groups; ++u) {
          if (group_of[u] == g) part += own[u];
        }
        parts[thread] = part;
      }
      __syncthreads();
      for (int k = 0; k < here && thread == 0; ++k) sum += parts[k];
      __syncthreads();
    }
    if (thread != 0) continue;
    if (g == num_groups) {
      losses = sum;
    } else {
      sums[g] = sum;
      total += sum;
    }
  }
  if (thread == 0) *skip = is_finite(rounded_norm(total)) && is_finite(losses) ? 0 : 1;
}

__global__ void __launch_bounds__(kThreads)
    clip_scales(const double* __restrict__ sums, const ClipGroup* __restrict__ groups, int num_groups,
                float* __restrict__ scales) {
  for (int g = static_cast<int>(threadIdx.x); g < num_groups; g += kThreads)
    scales[g] = clip_factor_of(g, groups, num_groups, sums);
}

}  // namespace

cudaError_t launch_step_norms(const double* squares, std::int64_t ranks, std::int64_t sharing_ranks, std::int64_t units,
                              const std::int32_t* group_of, std::int64_t num_groups, double* sums, std::int32_t* skip,
                              cudaStream_t stream) {
  step_norms<<<1, kThreads, 0, stream>>>(squares, static_cast<int>(ranks), static_cast<int>(sharing_ranks),
                                         static_cast<int>(units), group_of, static_cast<int>(num_groups), sums, skip);
  return cudaGetLastError();
}

cudaError_t launch_clip_scales(const double* sums, const ClipGroup* groups, std::int64_t num_groups, float* scales,
                               cudaStream_t stream) {
  clip_scales<<<1, kThreads, 0, stream>>>(sums, groups, static_cast<int>(num_groups), scales);
  return cudaGetLastError();
}

}  // namespace troupe::kernels::cuda

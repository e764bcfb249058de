// One fault each, at the line that says so: the interpreter must find it there. The comment names the kind.
#include <cuda_runtime.h>

#include <cstdint>

namespace troupe::device::ptx {

extern "C" {

__global__ void missing_barrier(const float* x, float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];         // missing_barrier: shared_race
  out[threadIdx.x] = s[63 - threadIdx.x];  // missing_barrier: shared_race or uninitialised_memory
}

__global__ void overwritten_early(const float* x, float* out) {
  __shared__ float s[64];
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x] = x[64 * i + threadIdx.x];  // overwritten_early: shared_race
    __syncthreads();
    sum += s[63 - threadIdx.x];  // overwritten_early: shared_race
  }
  out[threadIdx.x] = sum;
}

__global__ void missing_syncwarp(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  out[threadIdx.x] = s[31 - threadIdx.x];  // missing_syncwarp: shared_race
}

__global__ void same_place(float* out) {
  __shared__ int s[2];
  s[threadIdx.x % 2] = static_cast<int>(threadIdx.x);  // same_place: shared_race
  __syncthreads();
  out[threadIdx.x] = static_cast<float>(s[threadIdx.x % 2]);
}

__global__ void missing_wait(const float4* x, float4* out) {
  __shared__ float4 s[32];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&s[threadIdx.x]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // missing_wait: async_not_waited
}

__global__ void wait_of_another(const float4* x, float4* out) {
  __shared__ float4 s[64];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&s[threadIdx.x]));
  const float4* from = x + threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));  // wait_of_another: shared_race
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = s[63 - threadIdx.x];  // wait_of_another: shared_race or async_not_waited or uninitialised_memory
}

__global__ void off_by_one(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = 2.0f * x[i < n ? i : 0];  // off_by_one: out_of_bounds
}

__global__ void wrong_stride(const float* x, float* out, int columns) {
  const int row = blockIdx.x, column = threadIdx.x;
  out[row * (columns - 1) + column] = x[row * columns + column];  // wrong_stride: global_race
}

__global__ void unwritten_shared(float* out) {
  __shared__ float s[64];
  if (threadIdx.x < 63) s[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // unwritten_shared: uninitialised_memory
}

__global__ void unwritten_global(const float* x, float* out) {
  out[threadIdx.x] = x[threadIdx.x];  // unwritten_global: uninitialised_memory
}

__global__ void misaligned_vector(const float* x, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(x + 4 * threadIdx.x + 1);  // misaligned_vector: misaligned
}

__global__ void shared_overrun(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x + 1] = x[threadIdx.x];  // shared_overrun: out_of_bounds
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x / 2 + 1];
}

__global__ void missing_lane(const int* x, int* out) {
  int v = x[threadIdx.x];
  if (threadIdx.x != 5) v += __shfl_xor_sync(0xFFFFFFFFu, v, 1);  // missing_lane: missing_lane
  out[threadIdx.x] = v;
}

__global__ void wrong_mask(const int* x, int* out) {
  int v = x[threadIdx.x];
  if (threadIdx.x < 16) v = __shfl_sync(0x0000FFFFu, v, threadIdx.x + 8);  // wrong_mask: missing_lane
  out[threadIdx.x] = v;
}

__global__ void parted_barrier(const int* x, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (x[threadIdx.x] > 3) {
    __syncthreads();  // parted_barrier: divergent_barrier
    s[threadIdx.x] += 1;
  }
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void barrier_of_one_warp(const int* x, int* out) {
  int v = x[threadIdx.x];
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 3, 64;" ::: "memory");  // barrier_of_one_warp: hang
    v += 1;
  }
  out[threadIdx.x] = v;
}

__global__ void endless(const volatile int* flag, int* out) {
  while (*flag == 0) {  // endless: hang
  }
  out[threadIdx.x] = 1;
}

__global__ void read_only_written(const int* __restrict__ x, int* out) {
  out[threadIdx.x] = __ldg(x + threadIdx.x) + 1;  // read_only_written: read_only_written
}

__global__ void stops(const int* x, int* out) {
  if (x[threadIdx.x] == 7) __trap();  // stops: trap
  out[threadIdx.x] = x[threadIdx.x];
}

__global__ void sound_copy(const int* x, int* out) {
  out[threadIdx.x] = x[threadIdx.x];  // sound_copy: use_after_free
}
}

}  // namespace troupe::device::ptx

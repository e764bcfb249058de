// What the tests of the stand-in launch.
#include "tests/device/standin/kernels/steps.h"

namespace troupe::device::standin {
namespace {

__global__ void add(const float* x, float addend, float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = x[i] + addend;
}

__global__ void shift_left(const float* x, int shift, float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = x[i + shift];
}

}  // namespace

cudaError_t launch_add(const float* x, float addend, float* y, int count, cudaStream_t stream) {
  add<<<(count + 63) / 64, 64, 0, stream>>>(x, addend, y, count);
  return cudaGetLastError();
}

cudaError_t launch_shift(const float* x, int shift, float* y, int count, cudaStream_t stream) {
  shift_left<<<(count + 63) / 64, 64, 0, stream>>>(x, shift, y, count);
  return cudaGetLastError();
}

}  // namespace troupe::device::standin

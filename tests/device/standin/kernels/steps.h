#pragma once

#include <cuda_runtime_api.h>

// Small launchers that the tests of the stand-in enqueue.
namespace troupe::device::standin {

/// y[i] = x[i] + addend, i < count.
cudaError_t launch_add(const float* x, float addend, float* y, int count, cudaStream_t stream);
/// y[i] = x[i + shift]: reads behind the end of x where `shift` is not 0.
cudaError_t launch_shift(const float* x, int shift, float* y, int count, cudaStream_t stream);

}  // namespace troupe::device::standin

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels::cuda {

/// Products by cuBLASLt on one device, with a workspace. Sums are f32; a result is rounded once, behind the bias. The
/// algorithm is the library's first choice for the shape, which is asked for once: the same shape gives the same bits.
/// Not thread-safe. Products of one object must be ordered, since they share its workspace.
/// Source: cuBLAS 13.0, "cuBLASLt API"; row-major out = a b is column-major out^T = b^T a^T.
class Products {
 public:
  /// `workspace` is `workspace_bytes` of device memory, 256-byte aligned, which outlives the object.
  static Result<std::unique_ptr<Products>> make(void* workspace, std::int64_t workspace_bytes);
  virtual ~Products() = default;

  /// Enqueues the product; never waits. Nothing to do where m or n is 0.
  /// Errors: internal, with the library's status.
  virtual Result<void> multiply(const DeviceProduct& product, cudaStream_t stream) = 0;
};

}  // namespace troupe::kernels::cuda

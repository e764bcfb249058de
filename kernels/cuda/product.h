#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "base/namespaces.h"
#include "base/result.h"

namespace troupe::kernels::cuda {

/// What the numbers of a matrix are.
enum class MatrixType : std::uint8_t { f32, bf16 };

/// Which operand lies transposed: out = a b with a [m, k] and b [k, n]; a b^T with b [n, k]; a^T b with a [k, m].
enum class ProductForm : std::uint8_t { nn, nt, tn };

/// One product of row-major matrices in device memory.
struct Product {
  ProductForm form = ProductForm::nn;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  MatrixType operand_type = MatrixType::f32;
  MatrixType out_type = MatrixType::f32;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  /// Elements between two rows; 0: rows are dense.
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t out_stride = 0;
  /// Of n numbers of out's type, added to each row; or null.
  const void* bias = nullptr;
  /// Adds to what `out` holds.
  bool add = false;
};

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
  virtual Result<void> multiply(const Product& product, cudaStream_t stream) = 0;
};

}  // namespace troupe::kernels::cuda

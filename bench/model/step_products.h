#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "bench/model/dit_case.h"
#include "bench/model/product_recorder.h"

namespace troupe::bench {

/// The matrix products of one forward and backward of the case's network over `batch`, each once and whole: what the
/// learner's step cannot do without, nothing run twice, no tiles. Found on the meta device (meta_operators.cpp), where
/// the network takes LibTorch's own operators and nothing is computed; an attention is six batched products, two
/// forward and four backward. Operands are f32, on the CPU.
std::vector<Product> step_products(const DitCase& dit_case, const Batch& batch);

/// The same products on operands of that dtype.
std::vector<Product> in_dtype(const std::vector<Product>& products, at::ScalarType dtype);

/// Seconds that they take, those of attention apart, with LibTorch on `threads` threads.
struct ProductSeconds {
  double linear = 0, attention = 0;
  double all() const { return linear + attention; }
};
ProductSeconds time_products(const std::vector<Product>& products, int threads);

}  // namespace troupe::bench

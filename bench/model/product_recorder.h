#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

/// One matrix product, batched: [batch, m, k] x [batch, k, n], with its operands allocated.
struct Product {
  at::Tensor a, b, out;
  bool is_attention = false;
  double flops() const;
};

/// The GEMMs and attention products of a program, found by watching ATen's operators while it runs once: mm, addmm and
/// bmm as they are called, with their strides; a fused attention as the products that it computes inside (two forward,
/// five backward, one of them the scores again). A product that the kernels cut into tiles (kernels/product.h) is found
/// as its tiles.
std::vector<Product> record_products(const std::function<void()>& program);

/// Runs all of them once.
void run_products(const std::vector<Product>& products);

/// "1,234 products, 0.78 TFLOP (12 % attention)".
std::string describe(const std::vector<Product>& products);

}  // namespace troupe::bench

#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <ostream>
#include <vector>

#include "kernels/threads.h"
#include "tests/support/tensor_checks.h"

namespace troupe::testing {

using Tensors = std::vector<at::Tensor>;
/// An operator as a function of its differentiable inputs.
using Operator = std::function<at::Tensor(const Tensors&)>;

/// The result, then the gradient of every input, seeded by a fixed tensor like the result.
inline Tensors run_operator(const Operator& op, const Tensors& inputs) {
  Tensors leaves;
  for (const auto& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const auto y = op(leaves);
  // rounded, so that every dtype starts from the same values
  const auto seed =
      at::arange(y.numel(), y.options().dtype(at::kDouble)).mul(0.7).sin().view(y.sizes()).to(at::kBFloat16);
  Tensors out{y.detach()};
  const auto gradients = torch::autograd::grad({y}, leaves, {seed.to(y.scalar_type())});
  out.insert(out.end(), gradients.begin(), gradients.end());
  return out;
}

inline double relative_error(const at::Tensor& got, const at::Tensor& want) {
  const auto exact = want.to(at::kDouble);
  return ((got.to(at::kDouble) - exact).norm() / exact.norm().clamp_min(1e-30)).item<double>();
}

/// The fused operator in `dtype` against ATen's composition in f64 on the same (rounded) inputs: result and every
/// gradient by relative L2 <= tolerance.
inline void expect_matches_f64(const Operator& fused, const Operator& composed, const Tensors& inputs,
                               at::ScalarType dtype, double tolerance) {
  Tensors narrow, exact;
  for (const auto& input : inputs) {
    narrow.push_back(input.to(dtype));
    exact.push_back(narrow.back().to(at::kDouble));
  }
  const auto got = run_operator(fused, narrow), want = run_operator(composed, exact);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].scalar_type(), dtype) << "output " << i;
    EXPECT_LE(relative_error(got[i], want[i]), tolerance) << (i == 0 ? "result" : "gradient of an input") << ", " << i;
  }
}

/// The same bits in f32 with one and with three threads.
inline void expect_same_bits_for_any_threads(const Operator& op, Tensors inputs) {
  for (auto& input : inputs) input = input.to(at::kFloat);
  kernels::set_num_threads(1);
  const auto one = run_operator(op, inputs);
  kernels::set_num_threads(3);
  const auto three = run_operator(op, inputs);
  kernels::set_num_threads(0);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << "output " << i;
}

struct DtypeCase {
  friend std::ostream& operator<<(std::ostream& out, const DtypeCase& c) { return out << c.name; }
  const char* name;
  at::ScalarType dtype;
  double tolerance;  ///< rounding of the dtype; a wrong formula is off by far more than the largest
};
inline const DtypeCase kDtypes[] = {
    {"f64", at::kDouble, 1e-13}, {"f32", at::kFloat, 3e-6}, {"bf16", at::kBFloat16, 8e-3}};

/// expect_matches_f64 in each of kDtypes.
inline void expect_matches_f64(const Operator& fused, const Operator& composed, const Tensors& inputs) {
  for (const auto& c : kDtypes) {
    SCOPED_TRACE(c.name);
    expect_matches_f64(fused, composed, inputs, c.dtype, c.tolerance);
  }
}

}  // namespace troupe::testing

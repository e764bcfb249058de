#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/visible.h"

namespace troupe::testing {

/// One thread for every test of an executable that includes this: equal bits on any machine, and two cores for many
/// tests.
class OneThread : public ::testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};
inline ::testing::Environment* const kOneThread = ::testing::AddGlobalTestEnvironment(new OneThread);

/// Largest absolute difference, in f64; infinite when shapes differ or a value is not finite.
inline double max_difference(const at::Tensor& got, const at::Tensor& want) {
  if (!got.defined() || !want.defined() || got.sizes() != want.sizes()) return std::numeric_limits<double>::infinity();
  if (got.numel() == 0) return 0;
  const auto difference = (got.to(at::kDouble) - want.to(at::kDouble)).abs();
  if (!difference.isfinite().all().item<bool>()) return std::numeric_limits<double>::infinity();
  return difference.max().item<double>();
}

inline double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

/// ||got - want|| / ||want||, in f64.
inline double relative_l2(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return std::numeric_limits<double>::infinity();
  const double norm = want.to(at::kDouble).norm().item<double>();
  return (got.to(at::kDouble) - want.to(at::kDouble)).norm().item<double>() / (norm > 0 ? norm : 1.0);
}

inline void expect_near(const at::Tensor& got, const at::Tensor& want, double tolerance, const std::string& what) {
  EXPECT_LE(max_difference(got, want), tolerance) << what << ": got " << got.sizes() << ", want " << want.sizes();
}

}  // namespace troupe::testing

#include "model/calibration/measure_core_rates.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <cmath>

#include "kernels/product.h"

namespace troupe::model {
namespace {

/// Measured once for all cases.
const CoreRates& measured() {
  static const CoreRates rates = measure_core_rates(2);
  return rates;
}

TEST(MeasureCoreRatesTest, EveryFamilyOfKernelsHasATimeInTheDtypesThatItHas) {
  for (const double rate : measured().products) EXPECT_GT(rate, 0);
  for (std::size_t i = 0; i < kKernelFamilies; ++i) {
    const auto family = static_cast<KernelFamily>(i);
    for (const bool is_bf16 : {false, true}) {
      // the optimizer and sums over ranks are f32, transfers have no dtype
      if (is_bf16 && family >= KernelFamily::adamw) continue;
      const KernelWork work{
          .family = family, .is_bf16 = is_bf16, .m = 300, .n = 300, .k = 64, .heads = 2, .bytes = 1e6};
      const double seconds = seconds_of(work, measured(), 2);
      // how fast the machine was is no matter of a test; bench_model_step_prediction holds the fit to measured steps
      EXPECT_GE(seconds, 0) << enum_name(family) << (is_bf16 ? " bf16" : " f32");
      EXPECT_TRUE(std::isfinite(seconds)) << enum_name(family) << (is_bf16 ? " bf16" : " f32");
    }
  }
}

TEST(MeasureCoreRatesTest, WhatTheProcessComputesWithStaysAsItWas) {
  const auto form = product_form();
  const int threads = at::get_num_threads();
  measured();
  EXPECT_EQ(product_form(), form);
  EXPECT_EQ(at::get_num_threads(), threads);
}

}  // namespace
}  // namespace troupe::model

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
  for (std::size_t i = 0; i < kKernelFamilies; ++i) {
    const auto family = static_cast<KernelFamily>(i);
    for (const bool is_bf16 : {false, true}) {
      // the optimizer and sums over ranks are f32, transfers have no dtype
      if (is_bf16 && family >= KernelFamily::adamw) continue;
      const KernelWork work{
          .family = family, .is_bf16 = is_bf16, .m = 300, .n = 300, .k = 64, .heads = 2, .bytes = 1e6};
      const double seconds = seconds_of(work, measured(), 2);
      EXPECT_GT(seconds, 0) << enum_name(family) << (is_bf16 ? " bf16" : " f32");
      EXPECT_LT(seconds, 1) << enum_name(family) << (is_bf16 ? " bf16" : " f32");
    }
  }
}

TEST(MeasureCoreRatesTest, TheFitGivesALargeProductsRate) {
  for (const bool is_bf16 : {false, true}) {
    const KernelWork work{.family = KernelFamily::product_nt, .is_bf16 = is_bf16, .m = 512, .n = 1024, .k = 1024};
    const double rate = work.product_flops() / seconds_of(work, measured(), 2);
    // the machine may be busy: a factor, not a tolerance of the fit, which bench_model_step_prediction measures
    EXPECT_LT(std::abs(std::log2(rate / measured().products[is_bf16 ? 1 : 0])), 1.6) << rate;
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

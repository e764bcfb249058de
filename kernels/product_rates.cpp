#include "kernels/product_rates.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>

#include "base/stopwatch.h"
#include "kernels/product.h"

namespace troupe::kernels {

MeasuredRates measure_product_rates() {
  constexpr std::int64_t kRows = 512, kInner = 1024, kCols = 1024;
  constexpr int kTries = 7;
  const at::NoGradGuard no_grad;
  const auto bf16 = at::TensorOptions().dtype(at::kBFloat16);
  const auto x = at::full({kRows, kInner}, 0.5, bf16), weight = at::full({kCols, kInner}, 0.25, bf16);
  const auto y = at::empty({kRows, kCols}, bf16), wide = at::empty({kRows, kCols}, at::kFloat);
  const auto native = [&] { product_out(y, x, weight.t()); };
  const auto widened = [&] {
    product_out(wide, x.to(at::kFloat), weight.to(at::kFloat).t());
    convert_out(y, wide);
  };
  double native_s = 1e9, widened_s = 1e9;
  const auto time = [](const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return seconds_since(begin);
  };
  // alternating, so that a moment of load meets both; the first of each is a warm-up
  native(), widened();
  for (int i = 0; i < kTries; ++i) {
    native_s = std::min(native_s, time(native));
    widened_s = std::min(widened_s, time(widened));
  }
  const double flops = 2.0 * static_cast<double>(kRows * kInner * kCols);
  return {.native = flops / native_s, .widened = flops / widened_s};
}

}  // namespace troupe::kernels

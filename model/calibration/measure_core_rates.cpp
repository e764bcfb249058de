#include "model/calibration/measure_core_rates.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/stopwatch.h"
#include "kernels/compute_thread.h"
#include "kernels/product.h"
#include "kernels/rank_sum.h"
#include "kernels/threads.h"
#include "model/calibration/timed_programs.h"
#include "model/calibration/timed_transfers.h"
#include "model/optim/adamw.h"

namespace troupe::model {
namespace {

/// From products that are one tile to those of the published sizes' shape, heads of 32 to 128 channels.
constexpr std::array<MeasuredBlock, 4> kBlocks = {{{.tokens = 48, .width = 64, .hidden = 128, .heads = 2},
                                                   {.tokens = 160, .width = 128, .hidden = 512, .heads = 4},
                                                   {.tokens = 420, .width = 256, .hidden = 1024, .heads = 4},
                                                   {.tokens = 1100, .width = 512, .hidden = 4096, .heads = 4}}};
constexpr std::array<int, 4> kBlockRuns = {40, 30, 15, 8};
/// The processor has no instructions for a type whose products have less than this share of f32's rate. The largest
/// block would take a minute in it, and precision.products auto does not choose it.
constexpr double kSlowShare = 0.5;
/// Elements of what is passed over.
constexpr std::array<std::int64_t, 3> kElements = {8'192, 400'000, 4'000'000};
constexpr int kRuns = 10;

/// One thread for LibTorch and `threads` for the kernels, native bf16 products. When this goes LibTorch's number and
/// the form are as they were, and the kernels have LibTorch's number.
class MeasuringSetup {
 public:
  explicit MeasuringSetup(int threads) : library_threads_(at::get_num_threads()), form_(product_form()) {
    begin_compute_thread(threads);
    set_product_form(ProductForm::native);
  }
  ~MeasuringSetup() {
    set_product_form(form_);
    set_num_threads(0);
    at::set_num_threads(library_threads_);
  }
  MeasuringSetup(const MeasuringSetup&) = delete;
  MeasuringSetup& operator=(const MeasuringSetup&) = delete;

 private:
  const int library_threads_;
  const ProductForm form_;
};

constexpr std::array<at::ScalarType, 2> kDtypes = {at::kFloat, at::kBFloat16};

/// FLOP/s of the product that rates are shares of: a large one, the best of some, its threads at hand as in a step.
double reference_rate(at::ScalarType dtype) {
  constexpr std::int64_t kRows = 512, kInner = 2048, kCols = 2048;
  const auto x = at::full({kRows, kInner}, 0.5, dtype), weight = at::full({kCols, kInner}, 0.25, dtype);
  const auto y = at::empty({kRows, kCols}, dtype);
  double best = 1e9;
  with_team(num_threads(), [&] {
    for (int i = 0; i <= kRuns; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      product_out(y, x, weight.t());
      best = std::min(best, seconds_since(begin));
    }
  });
  return 2.0 * static_cast<double>(kRows * kInner * kCols) / best;
}

void time_optimizer(KernelTimes& times) {
  for (const std::int64_t elements : kElements) {
    const auto count = static_cast<std::size_t>(elements);
    std::vector<float> p(count, 0.1f), m(count, 0.01f), v(count, 0.01f), g(count, 0.02f);
    times.add(adamw_work(elements),
              median_seconds(kRuns, [&] { adamw_step(p, m, v, g, 1.0f, adamw_update(1e-6, 3, {})); }));
    double sum = 0;
    times.add(squares_work(elements), median_seconds(kRuns, [&] { sum += sum_of_squares(g); }));
    times.add(rank_sum_work(2, elements / 2, false),
              median_seconds(kRuns, [&] { sum_in_rank_order(p.data(), g.data(), 2, elements / 2, sum < 0); }));
  }
}

void time_library(at::ScalarType dtype, KernelTimes& times) {
  const bool is_bf16 = dtype == at::kBFloat16;
  for (const std::int64_t elements : kElements) {
    const auto x = at::full({elements}, 0.5, dtype), y = at::empty({elements}, dtype);
    const auto bytes = static_cast<double>(elements * x.element_size());
    times.add({.family = KernelFamily::serial, .is_bf16 = is_bf16, .bytes = 2 * bytes},
              median_seconds(kRuns, [&] { y.copy_(x); }));
  }
}

void fit(const KernelTimes& times, CoreRates& rates) {
  for (std::size_t family = 0; family < kKernelFamilies; ++family) {
    for (const bool is_bf16 : {false, true}) {
      const auto& timed = times.of(static_cast<KernelFamily>(family), is_bf16);
      if (!timed.empty()) rates.coefficients[is_bf16 ? 1 : 0][family] = fit_coefficients(timed, rates.threads);
    }
  }
}

}  // namespace

CoreRates measure_core_rates(int threads) {
  const MeasuringSetup setup(threads);
  const at::NoGradGuard no_grad;
  CoreRates rates{.threads = threads};
  KernelTimes times;
  std::vector<TimedOperation> of_several;
  time_optimizer(times);
  time_transfers(times);
  for (const auto dtype : kDtypes) {
    rates.products[dtype == at::kBFloat16 ? 1 : 0] = reference_rate(dtype);
    time_library(dtype, times);
    const double share = rates.products[dtype == at::kBFloat16 ? 1 : 0] / rates.products[0];
    const bool is_slow = share < kSlowShare;
    for (std::size_t i = 0; i < kBlocks.size() - (is_slow ? 1 : 0); ++i) {
      const int runs = is_slow ? std::max(3, static_cast<int>(share * kBlockRuns[i])) : kBlockRuns[i];
      for (TimedOperation& one : time_block(kBlocks[i], dtype, runs)) {
        if (one.work.size() == 1)
          times.add(one.work.front(), one.seconds);
        else if (!one.work.empty())
          of_several.push_back(std::move(one));
      }
    }
  }
  fit(times, rates);
  // of an operation with several kernels the first took what the known times of the others leave
  for (const TimedOperation& one : of_several) {
    double rest = one.seconds;
    for (std::size_t i = 1; i < one.work.size(); ++i) rest -= seconds_of(one.work[i], rates, threads);
    times.add(one.work.front(), rest);
  }
  fit(times, rates);
  return rates;
}

}  // namespace troupe::model

#include "kernels/product.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>

#include "kernels/dispatch.h"
#include "kernels/row_kernels.h"
#include "kernels/threads.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::kernels {
namespace {

constexpr std::int64_t kMostThreads = 16;
/// A product with less multiplications is one tile.
constexpr double kSmallWork = 4194304.0;
/// From here on even kMostThreads threads must share the tiles well: the published sizes' products.
constexpr double kLargeWork = 4294967296.0;
constexpr double kLeastShare = 0.85;

/// How good a grid is: the share over 2 to kMostThreads threads, few counting most, less what its tiles lose to copies
/// of their operands (measured: about 12 rows' and columns' worth).
double score(const TileGrid& grid, double m, double n, double work) {
  double mean = 0, weights = 0, least = 1;
  for (std::int64_t threads = 2; threads <= kMostThreads; ++threads) {
    const double share = grid.busy_share(threads), weight = 1.0 / static_cast<double>(threads * threads);
    mean += share * weight;
    weights += weight;
    least = std::min(least, share);
  }
  const double copies = 12.0 * static_cast<double>(grid.rows) / m + 12.0 * static_cast<double>(grid.cols) / n;
  return mean / weights / (1 + copies) - (work >= kLargeWork && least < kLeastShare ? 1 : 0);
}

#if defined(__x86_64__)
/// Whether the processor multiplies tiles of bf16 and the system keeps their registers. Asked of CPUID, because clang
/// 14's __builtin_cpu_supports does not know the feature. Source: Intel's manual, volume 1, 13.3 and 18.2.
bool ask_for_bf16_tiles() {
  constexpr unsigned kOsXsave = 1U << 27, kTileState = 3U << 17, kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsXsave) == 0) return false;
  unsigned enabled = 0, upper = 0;
  __asm__("xgetbv" : "=a"(enabled), "=d"(upper) : "c"(0));
  if ((enabled & kTileState) != kTileState || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kAmxBf16) != 0 && (d & kAmxTile) != 0;
}
#endif

std::atomic<ProductForm>& form_of_process() {
  static std::atomic<ProductForm> form = has_bf16_tiles() ? ProductForm::native : ProductForm::widened;
  return form;
}

}  // namespace

bool has_bf16_tiles() {
#if defined(__x86_64__)
  static const bool has = ask_for_bf16_tiles();
  return has;
#else
  return false;
#endif
}

ProductForm product_form() noexcept { return form_of_process().load(std::memory_order_relaxed); }

void set_product_form(ProductForm form) noexcept { form_of_process().store(form, std::memory_order_relaxed); }

at::ScalarType product_dtype(at::ScalarType dtype) noexcept {
  return dtype == at::kBFloat16 && product_form() == ProductForm::widened ? at::kFloat : dtype;
}

TileGrid product_tiles(std::int64_t m, std::int64_t n, std::int64_t k) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  TileGrid best;
  if (work <= kSmallWork) return best;
  double best_score = -2;
  for (const std::int64_t rows : {128, 160, 192, 224, 256, 384, 512}) {
    for (const std::int64_t cols : {192, 256, 384, 512}) {
      const TileGrid grid{std::max<std::int64_t>(1, (m + rows / 2) / rows),
                          std::max<std::int64_t>(1, (n + cols / 2) / cols)};
      const double found = score(grid, static_cast<double>(m), static_cast<double>(n), work);
      if (found > best_score) best = grid, best_score = found;
    }
  }
  return best;
}

void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && out.dim() == 2 && a.size(1) == b.size(0) && out.size(0) == a.size(0) &&
                  out.size(1) == b.size(1) && a.scalar_type() == b.scalar_type(),
              "product: ", a.sizes(), " ", a.scalar_type(), " by ", b.sizes(), " ", b.scalar_type(), " into ",
              out.sizes());
  if (out.scalar_type() != a.scalar_type()) {
    const auto narrow = at::empty(out.sizes(), a.options());
    product_out(narrow, a, b);
    return convert_out(out, narrow);
  }
  const TileGrid grid = product_tiles(out.size(0), out.size(1), a.size(1));
  if (grid.count() == 1) {
    const at::NoGradGuard no_grad;
    auto whole = out;
    at::mm_out(whole, a, b);
    return;
  }
  each_part(grid.count(), num_threads(), [&](std::int64_t tile) {
    const at::NoGradGuard no_grad;
    // neighbours share columns of b, the operand that is mostly the larger one
    const Range rows = part_of(out.size(0), tile % grid.rows, grid.rows);
    const Range cols = part_of(out.size(1), tile / grid.rows, grid.cols);
    auto part = out.narrow(0, rows.begin, rows.end - rows.begin).narrow(1, cols.begin, cols.end - cols.begin);
    at::mm_out(part, a.narrow(0, rows.begin, rows.end - rows.begin), b.narrow(1, cols.begin, cols.end - cols.begin));
  });
}

void convert_out(const at::Tensor& out, const at::Tensor& in) {
  constexpr std::int64_t kBlock = 4096;
  TORCH_CHECK(out.sizes() == in.sizes() && out.is_contiguous() && in.is_contiguous(), "convert: ", in.sizes(), " into ",
              out.sizes());
  const auto flat_out = out.view(-1), flat_in = in.view(-1);
  parallel_blocks(in.numel(), kBlock, threads_for(in.numel()), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    flat_out.narrow(0, begin, end - begin).copy_(flat_in.narrow(0, begin, end - begin));
  });
}

at::Tensor product_operand(const at::Tensor& x) {
  const auto dtype = product_dtype(x.scalar_type());
  if (dtype == x.scalar_type()) return x;
  const auto dense = x.contiguous();
  auto wide = at::empty(dense.sizes(), dense.options().dtype(dtype));
  convert_out(wide, dense);
  return wide;
}

}  // namespace troupe::kernels

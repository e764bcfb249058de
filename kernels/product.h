#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "base/enum_names.h"
#include "base/namespaces.h"

namespace troupe::kernels {

// Matrix products on any number of threads with the same bits: a product is cut into tiles of rows and columns by its
// shape alone, the inner dimension is never split, and each tile is one call of the library on one thread.

/// Whether the processor multiplies tiles of bf16 (AMX) and the system keeps their registers. Asked once; any thread.
bool has_bf16_tiles();

/// How bf16 products are computed. Either form adds in f32.
enum class ProductForm : std::uint8_t {
  /// by the library's bf16 products
  native,
  /// operands widened to f32, which is exact, and the result rounded
  widened,
};
constexpr auto enum_names(ProductForm) { return std::array{"native", "widened"}; }

/// The form of this process; until set_product_form native where
/// has_bf16_tiles(). Any thread.
ProductForm product_form() noexcept;
/// Before the first product: all ranks of a job compute in one form, the plan's.
void set_product_form(ProductForm form) noexcept;
/// The dtype that products of `dtype` are computed in.
at::ScalarType product_dtype(at::ScalarType dtype) noexcept;

/// A product's tiles: a grid of `rows` x `cols` of them.
struct TileGrid {
  std::int64_t rows = 1, cols = 1;
  std::int64_t count() const { return rows * cols; }
  /// Part of the threads' time in which they have tiles, when all tiles take as long.
  double busy_share(std::int64_t threads) const {
    return static_cast<double>(count()) / static_cast<double>(threads * ((count() + threads - 1) / threads));
  }
  bool operator==(const TileGrid&) const = default;
};
/// The grid of a product [m, k] x [k, n]. One tile below 2^22 multiplications; else the grid that loses least between
/// small tiles, whose operands are copied more often, and numbers of tiles that 2 to 16 threads do not share evenly.
TileGrid product_tiles(std::int64_t m, std::int64_t n, std::int64_t k);

/// out = a b.
///
/// Shapes: a [m, k], b [k, n] with any strides, out [m, n] with dense rows; one dtype, that of the result or, for f32
///         results of bf16 operands, bf16 computed natively and then widened.
/// Grad:   none.
/// Errors: throws c10::Error on a shape or dtype mismatch.
void product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

/// out = in, converted to out's dtype, on the kernels' threads. Both dense and of one shape.
void convert_out(const at::Tensor& out, const at::Tensor& in);

/// `x` in the dtype that its products are computed in: itself, or a copy.
at::Tensor product_operand(const at::Tensor& x);

}  // namespace troupe::kernels

// Products in tiles: where they are cut, the same bits on any number of threads, both forms of bf16.
#include "kernels/product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernels/threads.h"
#include "tests/kernels/kernel_checks.h"

namespace troupe::kernels {
namespace {

struct Shape {
  std::int64_t m, n, k;
};
std::ostream& operator<<(std::ostream& out, const Shape& s) { return out << s.m << "x" << s.n << "x" << s.k; }

/// Restores the form.
class ProductFormTest : public ::testing::TestWithParam<ProductForm> {
 protected:
  void SetUp() override {
    at::manual_seed(3);
    set_product_form(GetParam());
  }
  void TearDown() override { set_product_form(before_); }

 private:
  const ProductForm before_ = product_form();
};

at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  auto out = at::empty({a.size(0), b.size(1)}, a.options().dtype(dtype));
  product_out(out, a, b);
  return out;
}

// 900 rows: three frames of DreamZero 5B's tokens; 3072 and 14336 its widths
TEST(ProductTest, SixteenThreadsShareTheTilesOfThePublishedSize) {
  for (const Shape s : {Shape{900, 3072, 3072},
                        {900, 14336, 3072},
                        {900, 3072, 14336},
                        {3072, 3072, 900},
                        {14336, 3072, 900},
                        {3072, 14336, 900},
                        {1800, 3072, 3072},
                        {3000, 14336, 3072}}) {
    for (std::int64_t threads = 2; threads <= 16; ++threads)
      EXPECT_GE(product_tiles(s.m, s.n, s.k).busy_share(threads), 0.85) << s << " on " << threads;
  }
}

TEST(ProductTest, ASmallProductIsOneTile) {
  EXPECT_EQ(product_tiles(256, 64, 256), TileGrid{});
  EXPECT_EQ(product_tiles(1, 100'000, 1), TileGrid{});
  EXPECT_GT(product_tiles(1000, 768, 768).count(), 1);
}

TEST(ProductTest, TilesFollowFromTheShapeAlone) {
  const auto grid = product_tiles(1000, 768, 768);
  for (const int threads : {1, 2, 16}) {
    set_num_threads(threads);
    EXPECT_EQ(product_tiles(1000, 768, 768), grid);
  }
  set_num_threads(0);
}

TEST(ProductTest, OperandsThatDoNotFitAreRefused) {
  EXPECT_THROW(product(at::ones({2, 3}), at::ones({4, 5}), at::kFloat), c10::Error);
  EXPECT_THROW(product(at::ones({2, 3}), at::ones({3, 5}).to(at::kBFloat16), at::kFloat), c10::Error);
  EXPECT_THROW(product_out(at::empty({2, 4}), at::ones({2, 3}), at::ones({3, 5})), c10::Error);
}

TEST_P(ProductFormTest, AnyNumberOfThreadsGivesTheSameBits) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto a = product_operand(at::randn({517, 193}).to(dtype)),
               w = product_operand(at::randn({300, 193}).to(dtype));
    set_num_threads(1);
    const auto one = product(a, w.t(), a.scalar_type()), gradient = product(one.t(), a, at::kFloat);
    EXPECT_LE(relative_error(one, at::matmul(a.to(at::kDouble), w.to(at::kDouble).t())), 3e-3);
    for (const int threads : {2, 3, 4, 5, 8, 16}) {
      set_num_threads(threads);
      EXPECT_TRUE(at::equal(product(a, w.t(), a.scalar_type()), one)) << threads;
      EXPECT_TRUE(at::equal(product(one.t(), a, at::kFloat), gradient)) << threads;
    }
  }
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(Forms, ProductFormTest, ::testing::Values(ProductForm::native, ProductForm::widened),
                         [](const auto& param_info) { return std::string(enum_name(param_info.param)); });

}  // namespace
}  // namespace troupe::kernels

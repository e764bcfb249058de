// Products by cuBLASLt, on its stand-in: which matrix is which, strides, bias, accumulation, one workspace a stream.
#include "kernels/cuda/product.h"

#include <gmock/gmock.h>

#include <memory>

#include "tests/kernels/cuda/device_array.h"

namespace troupe::kernels::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T>
constexpr ElementType type_of() {
  return std::is_same_v<T, float> ? ElementType::f32 : ElementType::bf16;
}

class CudaProductTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 5}); }

  /// Of operands T and results O, in every layout, with and without bias and what is there already.
  template <class T, class O>
  void check() {
    const std::int64_t m = 5, n = 7, k = 11, gap = 3;
    for (const auto layout : {ProductLayout::nn, ProductLayout::nt, ProductLayout::tn}) {
      for (const bool biased : {false, true}) {
        for (const bool add : {false, true}) {
          const bool is_tn = layout == ProductLayout::tn, is_nt = layout == ProductLayout::nt;
          const std::int64_t a_rows = is_tn ? k : m, a_columns = is_tn ? m : k;
          const std::int64_t b_rows = is_nt ? n : k, b_columns = is_nt ? k : n;
          const auto a = random_values<T>(static_cast<std::size_t>(a_rows * (a_columns + gap)), 1);
          const auto b = random_values<T>(static_cast<std::size_t>(b_rows * b_columns), 2);
          const auto before = random_values<O>(static_cast<std::size_t>(m * (n + gap)), 3);
          const auto bias = random_values<O>(static_cast<std::size_t>(n), 4);
          const DeviceStream stream;
          const DeviceArray a_there(a, stream), b_there(b, stream);
          const DeviceArray out(before, stream), bias_there(bias, stream);
          const DeviceArray<std::byte> workspace(1024, stream);
          auto products = Products::make(workspace.data(), 1024);
          ASSERT_TRUE((*products)->multiply({.layout = layout,
                                             .m = m,
                                             .n = n,
                                             .k = k,
                                             .operand_type = type_of<T>(),
                                             .out_type = type_of<O>(),
                                             .a = a_there.data(),
                                             .b = b_there.data(),
                                             .out = out.data(),
                                             .a_stride = a_columns + gap,
                                             .out_stride = n + gap,
                                             .bias = biased ? bias_there.data() : nullptr,
                                             .add = add},
                                            stream));
          std::vector<double> want;
          for (const auto& value : before) want.push_back(to_double(value));
          for (std::int64_t row = 0; row < m; ++row) {
            for (std::int64_t column = 0; column < n; ++column) {
              double sum = biased ? to_double(bias[static_cast<std::size_t>(column)]) : 0;
              for (std::int64_t p = 0; p < k; ++p) {
                const auto at = is_tn ? p * (a_columns + gap) + row : row * (a_columns + gap) + p;
                const auto bt = is_nt ? column * k + p : p * n + column;
                sum += to_double(a[static_cast<std::size_t>(at)]) * to_double(b[static_cast<std::size_t>(bt)]);
              }
              auto& value = want[static_cast<std::size_t>(row * (n + gap) + column)];
              value = add ? value + sum : sum;
            }
          }
          expect_close(out.read(), want, 1.01 * rounding_of<O>(), "out");
          EXPECT_THAT(device::standin::report().findings, IsEmpty());
        }
      }
    }
  }
};

TEST_F(CudaProductTest, EveryFormGivesRowsTimesColumns) {
  check<float, float>();
  check<simd::Bf16, simd::Bf16>();
  check<simd::Bf16, float>();
}

TEST_F(CudaProductTest, TwoStreamsMayNotShareAWorkspace) {
  const DeviceStream first, second;
  const auto values = random_values<float>(16, 1);
  const DeviceArray a(values, first), one(values, first), b(values, second), two(values, second);
  const DeviceArray<std::byte> workspace(1024, first);
  auto products = Products::make(workspace.data(), 1024);
  const auto multiply = [&](const DeviceArray<float>& from, const DeviceArray<float>& to, cudaStream_t stream) {
    return (*products)->multiply({.m = 4, .n = 4, .k = 4, .a = from.data(), .b = from.data(), .out = to.data()},
                                 stream);
  };
  ASSERT_TRUE(multiply(a, one, first));
  ASSERT_TRUE(multiply(b, two, second));
  EXPECT_THAT(device::standin::report().findings, ElementsAre(HasSubstr("1024 bytes")));
}

}  // namespace
}  // namespace troupe::kernels::cuda

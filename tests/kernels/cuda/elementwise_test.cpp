// Activations, sums and what else goes element by element or column by column, beside the host forms and f64.
#include "kernels/cuda/elementwise.h"

#include <gmock/gmock.h>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/copy_rows.h"
#include "kernels/cuda/modulation.h"
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/row_sum.h"
#include "kernels/cuda/squared_error.h"
#include "kernels/cuda/weighted_sum.h"
#include "kernels/row_kernels.h"
#include "tests/kernels/cuda/against_host.h"

namespace troupe::kernels::cuda {
namespace {

/// One, a prime, one past a block of threads with a vector each, and many.
const std::vector<std::int64_t> kCounts = {1, 127, 2049, 40'000};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double activated(Activation activation, double u) {
  switch (activation) {
    case Activation::gelu_tanh:
      return u / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
    case Activation::gelu_erf:
      return u / 2 * (1 + std::erf(u / std::sqrt(2.0)));
    case Activation::silu:
      return u * sigmoid(u);
    case Activation::relu:
      return std::max(u, 0.0);
  }
  return 0;
}

template <class T>
class CudaElementwiseTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 9}); }
  static std::vector<T> values(std::int64_t count, std::uint32_t seed) {
    return random_values<T>(static_cast<std::size_t>(count), seed);
  }
  /// op(values) in f64, and rounded once.
  template <class Op>
  static std::vector<double> each(const std::vector<T>& a, const Op& op) {
    std::vector<double> all;
    for (std::size_t i = 0; i < a.size(); ++i) all.push_back(op(i));
    return all;
  }
  static double rounded(double value) { return to_double(from_float<T>(static_cast<float>(value))); }
};

using Elements = ::testing::Types<float, simd::Bf16>;
TYPED_TEST_SUITE(CudaElementwiseTest, Elements);

TYPED_TEST(CudaElementwiseTest, ActivationsAndTheirSlopesAreThoseOfTheFormulas) {
  for (const auto count : kCounts) {
    for (const auto activation : {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu}) {
      SCOPED_TRACE(::testing::Message() << "activation " << static_cast<int>(activation) << " of " << count);
      const DeviceStream stream;
      const auto u = this->values(count, 1), dy = this->values(count, 2);
      const DeviceArray u_there(u, stream), dy_there(dy, stream);
      const DeviceArray<TypeParam> y(u.size(), stream), du(u.size(), stream);
      ASSERT_EQ(launch_activation_forward<TypeParam>(activation, count, u_there.data(), y.data(), stream), cudaSuccess);
      ASSERT_EQ(
          launch_activation_backward<TypeParam>(activation, count, dy_there.data(), u_there.data(), du.data(), stream),
          cudaSuccess);
      const double tolerance = 1.01 * rounding_of<TypeParam>() + 16 * rounding_of<float>();
      expect_close(y.read(), this->each(u, [&](std::size_t i) { return activated(activation, to_double(u[i])); }),
                   tolerance, "y");
      const auto slope = [&](double at) {
        if (activation == Activation::relu) return at > 0 ? 1.0 : 0.0;
        constexpr double kStep = 1e-5;
        return (activated(activation, at + kStep) - activated(activation, at - kStep)) / (2 * kStep);
      };
      expect_close(du.read(), this->each(u, [&](std::size_t i) { return to_double(dy[i]) * slope(to_double(u[i])); }),
                   tolerance, "du");
      expect_clean(count == kCounts.back() ? 3072 : 0);
    }
  }
}

TYPED_TEST(CudaElementwiseTest, SumsAndProductsOfTwoRoundWhereTheySay) {
  for (const auto count : kCounts) {
    SCOPED_TRACE(::testing::Message() << count << " elements");
    const DeviceStream stream;
    const auto a = this->values(count, 1), b = this->values(count, 2);
    const DeviceArray a_there(a, stream), b_there(b, stream), sum(a, stream);
    const DeviceArray<TypeParam> added(a.size(), stream), with_scaled(a.size(), stream), scaled(a.size(), stream);
    const double scale = 0.3;
    ASSERT_EQ(launch_add<TypeParam>(count, a_there.data(), b_there.data(), added.data(), stream), cudaSuccess);
    ASSERT_EQ(launch_add_scaled<TypeParam>(count, a_there.data(), b_there.data(), scale, with_scaled.data(), stream),
              cudaSuccess);
    ASSERT_EQ(launch_scale<TypeParam>(count, a_there.data(), scale, scaled.data(), stream), cudaSuccess);
    ASSERT_EQ(launch_add_to<TypeParam>(count, sum.data(), b_there.data(), stream), cudaSuccess);
    const auto one = static_cast<double>(static_cast<float>(scale));
    const double ulp = 2.01 * rounding_of<float>();
    const auto at = [](const std::vector<TypeParam>& from, std::size_t i) { return to_double(from[i]); };
    const auto total = this->each(a, [&](std::size_t i) { return this->rounded(at(a, i) + at(b, i)); });
    expect_close(added.read(), total, ulp, "a + b");
    expect_close(sum.read(), total, ulp, "sum");
    const bool is_bf16 = std::is_same_v<TypeParam, simd::Bf16>;
    expect_close(with_scaled.read(),
                 this->each(a, [&](std::size_t i) { return this->rounded(at(a, i) + this->rounded(one * at(b, i))); }),
                 is_bf16 ? 2 * rounding_of<simd::Bf16>() : ulp, "a + b scale");
    expect_close(scaled.read(), this->each(a, [&](std::size_t i) { return this->rounded(one * at(a, i)); }), ulp,
                 "a scale");
    expect_clean(count == kCounts.back() ? 3072 : 0);
  }
}

TYPED_TEST(CudaElementwiseTest, ColumnsAreSummedAndBiasesAdded) {
  for (const auto width : kWidths) {
    SCOPED_TRACE(::testing::Message() << "width " << width);
    device::standin::reset({.seed = 2});
    const DeviceStream stream;
    const std::int64_t rows = 131;
    const auto x = this->values(rows * width, 1), bias = this->values(width, 2);
    const auto product = random_values<float>(x.size(), 3);
    const DeviceArray x_there(x, stream), bias_there(bias, stream);
    const DeviceArray product_there(product, stream);
    const DeviceArray<float> sum(bias.size(), stream);
    const DeviceArray<TypeParam> y(x.size(), stream);
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(row_sum_scratch_bytes(rows, width)), stream);
    ASSERT_EQ(launch_row_sum<TypeParam>(rows, width, x_there.data(), sum.data(), scratch.data(), stream), cudaSuccess);
    ASSERT_EQ(
        (launch_add_bias<TypeParam, float>(rows, width, product_there.data(), bias_there.data(), y.data(), stream)),
        cudaSuccess);
    std::vector<double> want_sum(bias.size()), want_y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto column = i % bias.size();
      want_sum[column] += to_double(x[i]);
      want_y.push_back(static_cast<double>(product[i]) + to_double(bias[column]));
    }
    expect_close(sum.read(), want_sum, 256 * rounding_of<float>(), "sum");
    expect_close(y.read(), want_y, 1.01 * rounding_of<TypeParam>(), "y");
    expect_clean(width);
  }
}

TYPED_TEST(CudaElementwiseTest, ModulationsAddTheirRowsAndGiveTheirGradientsBack) {
  for (const auto width : kWidths) {
    SCOPED_TRACE(::testing::Message() << "width " << width);
    device::standin::reset({.seed = 2});
    const DeviceStream stream;
    const std::int64_t rows = 70, stride = 3 * width;
    const auto base = this->values(width, 1), conditioning = this->values(rows * stride, 2);
    const auto gradient = random_values<float>(static_cast<std::size_t>(rows * width), 3);
    const auto before = random_values<float>(conditioning.size(), 4);
    const DeviceArray base_there(base, stream), conditioning_there(conditioning, stream);
    const DeviceArray gradient_there(gradient, stream), d_rows(before, stream);
    const DeviceArray<TypeParam> plain(gradient.size(), stream), plus_one(gradient.size(), stream);
    const DeviceArray<float> d_base(base.size(), stream);
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(modulation_backward_scratch_bytes(rows, width)),
                                         stream);
    // the second of three modulations
    const auto* from = conditioning_there.data() + width;
    for (const bool one : {false, true})
      ASSERT_EQ(launch_modulation_forward<TypeParam>(rows, width, base_there.data(), from, stride, one,
                                                     one ? plus_one.data() : plain.data(), stream),
                cudaSuccess);
    ASSERT_EQ(launch_modulation_backward(rows, width, gradient_there.data(), d_base.data(), d_rows.data() + width,
                                         stride, scratch.data(), stream),
              cudaSuccess);
    std::vector<double> want_plain, want_plus_one, want_base(base.size()), want_rows;
    for (const auto value : before) want_rows.push_back(static_cast<double>(value));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto row = i / base.size(), column = i % base.size();
      const auto there = row * static_cast<std::size_t>(stride) + base.size() + column;
      want_plain.push_back(this->rounded(to_double(base[column]) + to_double(conditioning[there])));
      want_plus_one.push_back(this->rounded(want_plain.back() + 1));
      want_base[column] += static_cast<double>(gradient[i]);
      want_rows[there] += static_cast<double>(gradient[i]);
    }
    expect_close(plain.read(), want_plain, 2.01 * rounding_of<float>(), "base + rows");
    expect_close(plus_one.read(), want_plus_one, 2.01 * rounding_of<float>(), "base + rows + 1");
    expect_close(d_base.read(), want_base, 256 * rounding_of<float>(), "gradient of base");
    expect_close(d_rows.read(), want_rows, 2.01 * rounding_of<float>(), "gradient of rows");
    expect_clean(width);
  }
}

TYPED_TEST(CudaElementwiseTest, TheSquaredErrorIsThatOfTheHost) {
  for (const auto width : kWidths) {
    for (const bool of_elements : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "width " << width);
      device::standin::reset({.seed = 2});
      const DeviceStream stream;
      const std::int64_t rows = 37;
      const auto x = this->values(rows * width, 1);
      const auto target = random_values<float>(x.size(), 2);
      const auto c = random_values<float>(of_elements ? x.size() : static_cast<std::size_t>(rows), 3);
      const float scale = 0.25F;
      const DeviceArray x_there(x, stream);
      const DeviceArray target_there(target, stream), c_there(c, stream), scale_there(std::vector{scale}, stream);
      const DeviceArray<float> row_sums(static_cast<std::size_t>(rows), stream), loss(1, stream);
      const DeviceArray<TypeParam> dx(x.size(), stream);
      ASSERT_EQ(
          launch_squared_error_forward<TypeParam>(rows, width, x_there.data(), target_there.data(), c_there.data(),
                                                  of_elements, row_sums.data(), loss.data(), stream),
          cudaSuccess);
      ASSERT_EQ(
          launch_squared_error_backward<TypeParam>(rows, width, x_there.data(), target_there.data(), c_there.data(),
                                                   of_elements, scale_there.data(), dx.data(), stream),
          cudaSuccess);
      std::vector<double> want_rows(static_cast<std::size_t>(rows)), want_dx;
      double want_loss = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto row = i / static_cast<std::size_t>(width);
        const double apart = to_double(x[i]) - static_cast<double>(target[i]);
        const auto weight = static_cast<double>(c[of_elements ? i : row]);
        want_rows[row] += weight * apart * apart;
        want_loss += weight * apart * apart;
        want_dx.push_back(static_cast<double>(scale) * 2 * weight * apart);
      }
      expect_close(row_sums.read(), want_rows, 64 * rounding_of<float>() * std::sqrt(static_cast<double>(width)),
                   "sums of rows");
      expect_close(loss.read(), {want_loss}, 64 * rounding_of<float>() * std::sqrt(static_cast<double>(width)), "loss");
      expect_close(dx.read(), want_dx, 1.01 * rounding_of<TypeParam>() + 4 * rounding_of<float>(), "dx");
      expect_clean(width);
    }
  }
}

class CudaSumTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 4}); }
};

TEST_F(CudaSumTest, ConversionsRoundToNearestEven) {
  const DeviceStream stream;
  for (const auto count : kCounts) {
    const auto values = random_values<float>(static_cast<std::size_t>(count), 1);
    const DeviceArray from(values, stream);
    const DeviceArray<simd::Bf16> narrow(values.size(), stream);
    const DeviceArray<float> wide(values.size(), stream);
    ASSERT_EQ((launch_convert<simd::Bf16, float>(count, from.data(), narrow.data(), stream)), cudaSuccess);
    ASSERT_EQ((launch_convert<float, simd::Bf16>(count, narrow.data(), wide.data(), stream)), cudaSuccess);
    const auto result = wide.read();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], simd::to_float(simd::to_bf16(values[i]))) << i;
    expect_clean(count == kCounts.back() ? 3072 : 0);
  }
}

template <class To, class From>
void check_rows(std::int64_t channels, std::int64_t gap) {
  device::standin::reset({.seed = 4});
  const std::int64_t samples = 2, rows = 3, from_stride = channels + gap, to_stride = channels + 2 * gap;
  const DeviceStream stream;
  const auto from = random_values<From>(static_cast<std::size_t>(samples * rows * from_stride), 1);
  const auto before = random_values<To>(static_cast<std::size_t>(samples * (rows + 1) * to_stride), 2);
  const DeviceArray from_there(from, stream);
  for (const bool zeros : {false, true}) {
    const DeviceArray to(before, stream);
    ASSERT_EQ((launch_copy_rows<To, From>(samples, rows, channels,
                                          {zeros ? nullptr : from_there.data(), rows * from_stride, from_stride},
                                          {to.data(), (rows + 1) * to_stride, to_stride}, stream)),
              cudaSuccess);
    auto want = before;
    for (std::int64_t b = 0; b < samples; ++b) {
      for (std::int64_t i = 0; i < rows * channels; ++i) {
        const auto row = i / channels, c = i % channels;
        const From& value = from[static_cast<std::size_t>((b * rows + row) * from_stride + c)];
        want[static_cast<std::size_t>((b * (rows + 1) + row) * to_stride + c)] =
            from_float<To>(zeros ? 0.0F : static_cast<float>(to_double(value)));
      }
    }
    const auto result = to.read();
    ASSERT_EQ(0, std::memcmp(result.data(), want.data(), want.size() * sizeof(To))) << channels << " and " << gap;
  }
  // rows that begin within a sector share it with others
  expect_clean(gap % 16 == 0 ? channels : 0);
}

TEST_F(CudaSumTest, RowsAreCopiedBetweenStridesAndTypes) {
  for (const std::int64_t channels : {1, 127, 1025, 3072}) {
    for (const std::int64_t gap : {0, 3, 16}) {
      check_rows<float, float>(channels, gap);
      check_rows<float, simd::Bf16>(channels, gap);
      check_rows<simd::Bf16, float>(channels, gap);
      check_rows<simd::Bf16, simd::Bf16>(channels, gap);
    }
  }
}

template <class T>
void check_appended_rows(std::int64_t channels, std::int64_t gap) {
  device::standin::reset({.seed = 4});
  const std::int64_t samples = 3, rows = 2, from_stride = channels + gap, to_rows = 11;
  const DeviceStream stream;
  const auto from = random_values<T>(static_cast<std::size_t>(samples * rows * from_stride), 1);
  const auto before = random_values<T>(static_cast<std::size_t>(to_rows * channels), 2);
  const std::vector<std::int64_t> key_rows{4, 7, 1, 0, 3, 2, 7, 11, 1}, ends{7, 3, 11};
  const DeviceArray from_there(from, stream), to(before, stream);
  const DeviceArray rows_there(key_rows, stream);
  ASSERT_EQ(launch_append_rows<T>(samples, rows, channels, {from_there.data(), rows * from_stride, from_stride},
                                  {to.data(), 0, channels}, rows_there.data(), stream),
            cudaSuccess);
  auto want = before;
  for (std::int64_t b = 0; b < samples; ++b) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto row = ends[static_cast<std::size_t>(b)] - rows + i;
      std::copy_n(from.begin() + (b * rows + i) * from_stride, channels, want.begin() + row * channels);
    }
  }
  const auto result = to.read();
  ASSERT_EQ(0, std::memcmp(result.data(), want.data(), want.size() * sizeof(T))) << channels << " and " << gap;
  expect_clean(gap % 16 == 0 ? channels : 0);
}

TEST_F(CudaSumTest, NewRowsAreTheLastThatASampleSees) {
  for (const std::int64_t channels : {1, 127, 1025, 3072}) {
    for (const std::int64_t gap : {0, 3, 16}) {
      check_appended_rows<float>(channels, gap);
      check_appended_rows<simd::Bf16>(channels, gap);
    }
  }
}

TEST_F(CudaSumTest, WeightedSumsAndTheirGradients) {
  for (const auto count : kCounts) {
    const DeviceStream stream;
    const auto x = random_values<float>(static_cast<std::size_t>(count), 1), c = random_values<float>(x.size(), 2);
    const float dsum = 0.7F;
    const DeviceArray x_there(x, stream), c_there(c, stream), dsum_there(std::vector{dsum}, stream);
    const DeviceArray<float> sum(1, stream), dx(x.size(), stream);
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(weighted_sum_scratch_bytes(count)), stream);
    ASSERT_EQ(launch_weighted_sum_forward(count, x_there.data(), c_there.data(), sum.data(), scratch.data(), stream),
              cudaSuccess);
    ASSERT_EQ(launch_weighted_sum_backward(count, c_there.data(), dsum_there.data(), dx.data(), stream), cudaSuccess);
    double want = 0;
    std::vector<double> want_dx;
    for (std::size_t i = 0; i < x.size(); ++i) {
      want += static_cast<double>(c[i] * x[i]);
      want_dx.push_back(static_cast<double>(c[i] * dsum));
    }
    expect_close(sum.read(), {want}, 2 * rounding_of<float>(), "sum");
    expect_close(dx.read(), want_dx, 0, "dx");
    expect_clean(0);
  }
}

TEST_F(CudaSumTest, ManyPartsAreAddedInTheirOrder) {
  const DeviceStream stream;
  const std::int64_t parts = 700, channels = 3072;
  const auto values = random_values<float>(static_cast<std::size_t>(2 * parts * channels), 1);
  const DeviceArray there(values, stream);
  const DeviceArray first(std::vector<std::int32_t>{0, 300, 300, 700}, stream);
  const DeviceArray<float> out(3 * channels, stream), second(3 * channels, stream);
  ASSERT_EQ(launch_part_sums(there.data(), parts, first.data(), 3, channels, out.data(), second.data(), stream),
            cudaSuccess);
  const std::int64_t begins[] = {0, 300, 300}, ends[] = {300, 300, 700};
  for (const bool is_second : {false, true}) {
    const auto result = (is_second ? second : out).read();
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::int64_t column = 0; column < channels; ++column) {
        float sum = 0;
        for (auto part = begins[row]; part < ends[row]; ++part)
          sum += values[static_cast<std::size_t>(((is_second ? parts : 0) + part) * channels + column)];
        ASSERT_EQ(result[row * channels + static_cast<std::size_t>(column)], sum) << row << ", " << column;
      }
    }
  }
  const auto report = device::standin::report();
  EXPECT_THAT(report.findings, ::testing::IsEmpty());
  EXPECT_GE(report.kernels.at("add_parts").all.sector_use(), 0.95);
}

}  // namespace
}  // namespace troupe::kernels::cuda

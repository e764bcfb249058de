// The kernels of an update on a device: the same bits as the CPU's.
#include "kernels/cuda/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "kernels/rank_sum.h"
#include "model/optim/adamw.h"
#include "model/optim/moving_average.h"
#include "tests/kernels/cuda/device_array.h"

namespace troupe::kernels::cuda {
namespace {

using ::testing::IsEmpty;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class Moment>
class CudaAdamWTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 3}); }
};

using Moments = ::testing::Types<float, simd::Bf16>;
TYPED_TEST_SUITE(CudaAdamWTest, Moments);

TYPED_TEST(CudaAdamWTest, GivesTheBitsOfTheCpuAndDoesNothingWhenTold) {
  const model::AdamWOptions options{.weight_decay = 0.01};
  for (const std::size_t count : {1, 4, 1021, 4096}) {
    for (const std::int32_t skip : {0, 1}) {
      auto param = random_values<float>(count, 1), grad = random_values<float>(count, 2);
      auto m = random_values<TypeParam>(count, 3, 0.1F), v = random_values<TypeParam>(count, 4, 0.1F);
      for (auto& value : v) value = from_float<TypeParam>(static_cast<float>(std::abs(to_double(value))));
      const float scale = 0.7F;
      const double lr = 3e-3;
      const std::int64_t step = 5;
      const auto update = model::adamw_update(lr, step, options);
      const DeviceStream stream;
      const DeviceArray param_there(param, stream), grad_there(grad, stream);
      const DeviceArray m_there(m, stream), v_there(v, stream);
      const DeviceArray published(std::vector<simd::Bf16>(count), stream);
      const DeviceArray update_there(std::vector{update}, stream);
      const DeviceArray scale_there(std::vector{scale}, stream);
      const DeviceArray skip_there(std::vector{skip}, stream);
      ASSERT_EQ(launch_adamw<TypeParam>(param_there.data(), m_there.data(), v_there.data(), grad_there.data(),
                                        published.data(), static_cast<std::int64_t>(count), update_there.data(),
                                        scale_there.data(), skip_there.data(), stream),
                cudaSuccess);
      if (skip == 0) model::adamw_step(param, m, v, grad, scale, model::adamw_update(lr, step, options));
      EXPECT_TRUE(same_bits(param_there.read(), param)) << count;
      EXPECT_TRUE(same_bits(m_there.read(), m)) << count;
      EXPECT_TRUE(same_bits(v_there.read(), v)) << count;
      std::vector<simd::Bf16> copy(count);
      for (std::size_t i = 0; skip == 0 && i < count; ++i) copy[i] = simd::to_bf16(param[i]);
      EXPECT_TRUE(same_bits(published.read(), copy)) << count;
      EXPECT_THAT(device::standin::report().findings, IsEmpty());
    }
  }
}

class CudaShardTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 3}); }
};

TEST_F(CudaShardTest, TheSumOfSquaresHasTheBitsOfTheCpu) {
  for (const std::size_t count : {0, 1, 1021, 1025, 524'288 + 1024 * 3 + 7}) {
    const auto x = random_values<float>(count, 5);
    const DeviceStream stream;
    const DeviceArray x_there(x, stream);
    const DeviceArray<double> sum(1, stream);
    const DeviceArray<std::byte> scratch(
        static_cast<std::size_t>(sum_of_squares_scratch_bytes(static_cast<std::int64_t>(count))), stream);
    ASSERT_EQ(
        launch_sum_of_squares(x_there.data(), static_cast<std::int64_t>(count), sum.data(), scratch.data(), stream),
        cudaSuccess);
    EXPECT_EQ(sum.read()[0], model::sum_of_squares(x)) << count;
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(CudaShardTest, AMovingAverageHasTheBitsOfTheCpuAndStaysWhenTold) {
  for (const std::size_t count : {1, 127, 4096}) {
    for (const std::int32_t skip : {0, 1}) {
      auto average = random_values<float>(count, 8);
      const auto x = random_values<float>(count, 9);
      const DeviceStream stream;
      const DeviceArray average_there(average, stream), x_there(x, stream);
      const DeviceArray skip_there(std::vector{skip}, stream);
      const double tau = 0.1;
      ASSERT_EQ(
          launch_moving_average(average_there.data(), x_there.data(), static_cast<std::int64_t>(count),
                                static_cast<float>(1.0 - tau), static_cast<float>(tau), skip_there.data(), stream),
          cudaSuccess);
      if (skip == 0) model::move_average(average, x, tau);
      EXPECT_TRUE(same_bits(average_there.read(), average)) << count;
      EXPECT_THAT(device::standin::report().findings, IsEmpty());
    }
  }
}

TEST_F(CudaShardTest, RanksAreAddedInTheirOrder) {
  for (const std::int64_t count : {1, 127, 4096}) {
    for (const std::int64_t ranks : {1, 4}) {
      for (const bool add : {false, true}) {
        const auto parts = random_values<float>(static_cast<std::size_t>(ranks * count), 6);
        auto out = random_values<float>(static_cast<std::size_t>(count), 7);
        const DeviceStream stream;
        const DeviceArray parts_there(parts, stream), out_there(out, stream);
        ASSERT_EQ(launch_rank_sum(out_there.data(), parts_there.data(), ranks, count, add, stream), cudaSuccess);
        sum_in_rank_order(out.data(), parts.data(), ranks, count, add);
        EXPECT_TRUE(same_bits(out_there.read(), out)) << count << " of " << ranks;
        EXPECT_THAT(device::standin::report().findings, IsEmpty());
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda

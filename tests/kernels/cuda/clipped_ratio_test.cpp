// The clipped objective on a device, beside its host form and f64.
#include "kernels/cuda/clipped_ratio.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/cuda/against_host.h"
#include "tests/kernels/cuda/mutants.h"

namespace troupe::kernels::cuda {
namespace {

/// Numbers that a row has, and how they are shared among entries.
struct RatioCase {
  std::int64_t actions, width, per_entry;
};
/// One number, one past a warp, those of an action of a robot, and whole chunks of the 5B and 14B models.
constexpr RatioCase kRatioCases[] = {{1, 1, 1}, {3, 11, 33}, {24, 7, 7}, {24, 32, 768}, {48, 32, 1536}};

template <class T>
class CudaClippedRatioTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 9;

  explicit CudaClippedRatioTest() = default;

  /// Runs both directions for rows of every second block, and keeps what they wrote.
  void run(const RatioCase& c, bool compares) {
    const RatioShape shape{.rows = kRows,
                           .numbers = c.actions * c.width,
                           .per_entry = c.per_entry,
                           .width = c.width,
                           .blocks = 2 * kRows,
                           .actions = c.actions + 1,
                           .channels = c.width + 3};
    const RatioClip clip{.lower = 0.8, .upper = 1.25, .dual = 1.5};
    const auto numbers = static_cast<std::size_t>(kRows * shape.numbers);
    const auto entries = static_cast<std::size_t>(shape.entries());
    const auto v = random_values<T>(static_cast<std::size_t>(shape.predictions()), 1);
    std::vector<std::int64_t> block(kRows);
    for (std::size_t row = 0; row < block.size(); ++row) block[row] = static_cast<std::int64_t>(2 * row);
    auto scale = random_values<float>(numbers, 2, 0.3F), weight = random_values<float>(entries, 6);
    // entries of many numbers have ratios near one too
    const auto size = 1 / std::sqrt(static_cast<float>(c.per_entry));
    for (auto& x : scale) x *= size;
    auto offset = random_values<float>(numbers, 3, 0.5F);
    for (auto& x : offset) x *= size;
    scale[numbers / 2] = 0;
    weight[entries / 2] = 0;
    const auto base = random_values<float>(entries, 4, 0.4F), advantage = random_values<float>(entries, 5);
    const float dloss = 0.25F;

    const DeviceStream stream;
    const DeviceArray v_there(v, stream);
    const DeviceArray block_there(block, stream);
    const DeviceArray scale_there(scale, stream), offset_there(offset, stream), base_there(base, stream),
        advantage_there(advantage, stream), weight_there(weight, stream), dloss_there(std::vector{dloss}, stream);
    const DeviceArray<float> losses(entries, stream), loss(1, stream);
    const DeviceArray<T> dv(v.size(), stream);
    const RatioTerms<float> there{block_there.data(), scale_there.data(),     offset_there.data(),
                                  base_there.data(),  advantage_there.data(), weight_there.data()};
    ASSERT_EQ(launch_clipped_ratio_forward<T>(shape, clip, v_there.data(), there, losses.data(), loss.data(), stream),
              cudaSuccess);
    ASSERT_EQ(
        launch_clipped_ratio_backward<T>(shape, clip, v_there.data(), there, dloss_there.data(), dv.data(), stream),
        cudaSuccess);
    bytes_.clear();
    keep(losses.read());
    keep(loss.read());
    keep(dv.read());
    if (!compares) return;

    std::vector<float> host_losses(entries);
    std::vector<T> host_dv(v.size());
    const RatioTerms<float> here{block.data(), scale.data(),     offset.data(),
                                 base.data(),  advantage.data(), weight.data()};
    cpu::clipped_ratio_forward<T>(shape, clip, v.data(), here, host_losses.data(), 2);
    cpu::clipped_ratio_backward<T>(shape, clip, v.data(), here, dloss, host_dv.data(), 2);

    const auto wide = [](const auto& values) { return widened_values(values); };
    const auto v64 = wide(v), scale64 = wide(scale), offset64 = wide(offset), base64 = wide(base),
               advantage64 = wide(advantage), weight64 = wide(weight);
    const RatioTerms<double> exact{block.data(),  scale64.data(),     offset64.data(),
                                   base64.data(), advantage64.data(), weight64.data()};
    std::vector<double> want_losses(entries), want_dv(v.size());
    cpu::clipped_ratio_forward<double>(shape, clip, v64.data(), exact, want_losses.data(), 1);
    cpu::clipped_ratio_backward<double>(shape, clip, v64.data(), exact, static_cast<double>(dloss), want_dv.data(), 1);
    expect_like_host(losses.read(), host_losses, want_losses, "losses");
    expect_like_host(dv.read(), host_dv, want_dv, "dv");
    const double sum = std::accumulate(want_losses.begin(), want_losses.end(), 0.0);
    EXPECT_NEAR(static_cast<double>(loss.read().front()), sum, 1e-5 * std::max(1.0, std::abs(sum)));
  }

  std::vector<std::byte> bytes_;

 private:
  template <class U>
  void keep(const std::vector<U>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
};

using RatioElements = ::testing::Types<float, simd::Bf16>;
TYPED_TEST_SUITE(CudaClippedRatioTest, RatioElements);

TYPED_TEST(CudaClippedRatioTest, LossesAndGradientsAreThoseOfTheHost) {
  for (const auto& c : kRatioCases) {
    SCOPED_TRACE(::testing::Message() << c.per_entry << " numbers an entry");
    device::standin::reset({.seed = 3});
    this->run(c, true);
    for (const auto& finding : device::standin::report().findings) ADD_FAILURE() << finding;
  }
}

TYPED_TEST(CudaClippedRatioTest, PlantedFaultsAreFound) {
  for (const char* kernel : {"clipped_ratio_entries", "clipped_ratio_gradient"}) {
    expect_faults_found(kernel, [&] {
      this->run({3, 11, 33}, false);
      return this->bytes_;
    });
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda

// The decision on a step where the gradients lie: the same bits as the host's.
#include "kernels/cuda/step_decision.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cuda/device_array.h"

namespace troupe::kernels::cuda {
namespace {

using ::testing::IsEmpty;

/// Five units of three groups, of which the first two are clipped together; the fourth unit has no gradient.
struct Decision {
  static constexpr std::int64_t kUnits = 5;
  std::int64_t ranks = 1, sharing_ranks = 1;
  std::vector<double> squares = {};
  std::vector<std::int32_t> group_of = {0, 1, 2, kNoGroup, 0};
  std::vector<ClipGroup> groups = {{.limit = 0.5, .clip_set = 0, .is_updated = 1},
                                   {.limit = 0.5, .clip_set = 0, .is_updated = 1},
                                   {.limit = 0, .clip_set = 2, .is_updated = 1}};

  Decision(std::int64_t of_ranks, std::int64_t sharing) : ranks(of_ranks), sharing_ranks(sharing) {
    for (const float value : random_values<float>(static_cast<std::size_t>(ranks * (kUnits + 1)), 3))
      squares.push_back(static_cast<double>(value) * value * 1.1);
  }
  double& at(std::int64_t rank, std::int64_t unit) {
    return squares[static_cast<std::size_t>(rank * (kUnits + 1) + unit)];
  }

  struct Made {
    std::vector<float> scales;
    std::int32_t skip = 0;
  };
  Made on_device() const {
    const DeviceStream stream;
    const DeviceArray squares_there(squares, stream);
    const DeviceArray group_of_there(group_of, stream);
    const DeviceArray groups_there(groups, stream);
    const DeviceArray<float> scales(groups.size(), stream);
    const DeviceArray<std::int32_t> skip(1, stream);
    EXPECT_EQ(launch_step_decision(squares_there.data(), ranks, sharing_ranks, kUnits, group_of_there.data(),
                                   groups_there.data(), static_cast<std::int64_t>(groups.size()), scales.data(),
                                   skip.data(), stream),
              cudaSuccess);
    Made made{scales.read(), skip.read()[0]};
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
    return made;
  }
  std::vector<float> scales_on_host() {
    std::vector<double> sums(groups.size(), 0.0);
    for (std::int64_t rank = 0; rank < sharing_ranks; ++rank) {
      std::vector<double> parts(groups.size(), 0.0);
      for (std::int64_t u = 0; u < kUnits; ++u)
        if (const auto g = group_of[static_cast<std::size_t>(u)]; g != kNoGroup)
          parts[static_cast<std::size_t>(g)] += at(rank, u);
      for (std::size_t g = 0; g < sums.size(); ++g) sums[g] += parts[g];
    }
    std::vector<float> scales;
    const auto count = static_cast<std::int32_t>(groups.size());
    for (std::int32_t g = 0; g < count; ++g) scales.push_back(clip_factor_of(g, groups.data(), count, sums.data()));
    return scales;
  }
};

class CudaStepDecisionTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 3}); }
};

TEST_F(CudaStepDecisionTest, ClipsByTheNormsOfTheHost) {
  for (const std::int64_t ranks : {1, 2, 3, 129}) {
    Decision decision(ranks, ranks);
    const auto all = decision.on_device();
    EXPECT_EQ(all.skip, 0);
    EXPECT_EQ(all.scales, decision.scales_on_host()) << ranks << " ranks";
    EXPECT_LT(all.scales[0], 1.0F);
    // one group of a set alone
    decision.groups[1].is_updated = 0;
    EXPECT_EQ(decision.on_device().scales, decision.scales_on_host()) << ranks << " ranks";
  }
}

TEST_F(CudaStepDecisionTest, ReplicasCountOnce) {
  Decision decision(4, 2);
  EXPECT_EQ(decision.on_device().scales, decision.scales_on_host());
}

TEST_F(CudaStepDecisionTest, WhatIsNotFiniteSkipsTheStep) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double value : {nan, inf, 1e78}) {
    Decision decision(4, 2);
    decision.at(1, 2) = value;
    EXPECT_EQ(decision.on_device().skip, 1) << value;
  }
  // a loss, of a replica as well; a unit without a gradient does not matter
  Decision decision(4, 2);
  decision.at(3, Decision::kUnits) = nan;
  EXPECT_EQ(decision.on_device().skip, 1);
  decision.at(3, Decision::kUnits) = 1;
  decision.at(0, 3) = nan;
  EXPECT_EQ(decision.on_device().skip, 0);
}

TEST_F(CudaStepDecisionTest, MoreGroupsThanItTakesAreRefused) {
  EXPECT_EQ(launch_step_decision(nullptr, 1, 1, 0, nullptr, nullptr, kMostClipGroups + 1, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace troupe::kernels::cuda

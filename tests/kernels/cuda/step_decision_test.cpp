// What is decided of a step where the gradients lie.
#include "kernels/cuda/step_decision.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/kernels/cuda/device_array.h"

namespace troupe::kernels::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CudaStepDecisionTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 3}); }
};

/// The squares of four units and of the losses of each rank. Units 0 and 3 are of group 0, unit 1 of group 1, and unit
/// 2 has no gradient.
struct Judged {
  static constexpr std::int64_t kUnits = 4;
  std::int64_t ranks = 1, sharing_ranks = 1;
  std::vector<double> squares = std::vector<double>(static_cast<std::size_t>(ranks * (kUnits + 1)), 1.0);

  double& at(std::int64_t rank, std::int64_t unit) {
    return squares[static_cast<std::size_t>(rank * (kUnits + 1) + unit)];
  }
  struct Result {
    std::vector<double> sums;
    std::int32_t skip = 0;
  };
  Result on_device() const {
    const std::vector<std::int32_t> group_of = {0, 1, kNoGroup, 0};
    const DeviceStream stream;
    const DeviceArray squares_there(squares, stream);
    const DeviceArray group_of_there(group_of, stream);
    const DeviceArray<double> sums(2, stream);
    const DeviceArray<std::int32_t> skip(1, stream);
    EXPECT_EQ(launch_step_norms(squares_there.data(), ranks, sharing_ranks, kUnits, group_of_there.data(), 2,
                                sums.data(), skip.data(), stream),
              cudaSuccess);
    Result result{sums.read(), skip.read()[0]};
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
    return result;
  }
};

TEST_F(CudaStepDecisionTest, UnitsAndThenRanksAreAddedInTheirOrder) {
  for (const std::int64_t ranks : {1, 3, 129}) {
    Judged judged{.ranks = ranks, .sharing_ranks = ranks};
    // each sum rounds: 2^53 + 1 is 2^53
    judged.at(0, 0) = 0x1p53;
    const double others = 2.0 * static_cast<double>(ranks - 1);
    const auto [sums, skip] = judged.on_device();
    EXPECT_THAT(sums, ElementsAre(0x1p53 + others, static_cast<double>(ranks)));
    EXPECT_EQ(skip, 0);
  }
}

TEST_F(CudaStepDecisionTest, ReplicasCountOnce) {
  const Judged judged{.ranks = 4, .sharing_ranks = 2};
  EXPECT_THAT(judged.on_device().sums, ElementsAre(4.0, 2.0));
}

TEST_F(CudaStepDecisionTest, WhatIsNotFiniteSkipsTheStep) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  // the last is finite, but its root is none of f32
  for (const double value : {nan, inf, 1e78}) {
    Judged judged{.ranks = 4, .sharing_ranks = 2};
    judged.at(1, 1) = value;
    EXPECT_EQ(judged.on_device().skip, 1) << value;
  }
  // a replica's loss counts, a unit without a gradient does not
  Judged judged{.ranks = 4, .sharing_ranks = 2};
  judged.at(3, Judged::kUnits) = nan;
  EXPECT_EQ(judged.on_device().skip, 1);
  judged.at(3, Judged::kUnits) = 1;
  judged.at(0, 2) = nan;
  EXPECT_EQ(judged.on_device().skip, 0);
}

TEST_F(CudaStepDecisionTest, ClipsWithTheBitsOfTheHost) {
  const std::vector<double> sums = {0.37, 8.1, 1e-9, 5.3};
  std::vector<ClipGroup> groups = {{.limit = 0.5, .clip_set = 0, .is_updated = 1},
                                   {.limit = 0.5, .clip_set = 0, .is_updated = 1},
                                   {.limit = 1, .clip_set = 2, .is_updated = 1},
                                   {.limit = 0, .clip_set = 3, .is_updated = 1}};
  // the second group of a set left out
  for (const std::int32_t is_updated : {1, 0}) {
    groups[1].is_updated = is_updated;
    const DeviceStream stream;
    const DeviceArray sums_there(sums, stream);
    const DeviceArray groups_there(groups, stream);
    const DeviceArray<float> scales(groups.size(), stream);
    ASSERT_EQ(launch_clip_scales(sums_there.data(), groups_there.data(), 4, scales.data(), stream), cudaSuccess);
    std::vector<float> wanted;
    for (std::int32_t g = 0; g < 4; ++g) wanted.push_back(clip_factor_of(g, groups.data(), 4, sums.data()));
    EXPECT_LT(wanted[0], 1.0F);
    EXPECT_EQ(scales.read(), wanted);
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda

// DreamZero as a policy whose transformer computes on a device, on the stand-ins of the CUDA runtime and cuBLASLt, or
// with label gpu on hardware: robots that stand at different frames in one call, answered as on cores.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/device/standin/standin.h"
#include "tests/kernels/first_device.h"
#include "tests/workers/inference/policy/tiny_policy.h"

namespace troupe::workers {
namespace {

using Answers = std::vector<std::vector<float>>;

/// Two heads of 16 channels.
PolicySpec two_heads() {
  PolicySpec spec = tiny_spec();
  spec.model.dit.dim = 32;
  spec.model.dit.num_heads = 2;
  return spec;
}

std::unique_ptr<DreamZeroPolicy> policy_on_device(bool graphs) {
  return tiny_policy(two_heads(), {.steps = 3, .cuda_graphs = graphs}, testing::open_first_device());
}

/// Three calls: robot a begins; a goes on and b begins; b goes on and a begins again.
Answers play(Policy& policy) {
  Answers answers;
  const auto call = [&](const std::vector<Observation>& observations) {
    for (const auto& result : policy.act(observations)) {
      EXPECT_TRUE(result) << (result ? "" : result.error().message());
      answers.push_back(result ? result->values : std::vector<float>{});
    }
  };
  call({tiny_observation("a", 0, 1)});
  call({tiny_observation("a", 9, 2), tiny_observation("b", 0, 3)});
  call({tiny_observation("b", 9, 4), tiny_observation("a", 0, 5)});
  return answers;
}

class PolicyOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 2}); }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
    }
  }
};

TEST_F(PolicyOnDeviceTest, AnswersAreThoseOfTheCores) {
  const auto want = play(*tiny_policy(two_heads()));
  const auto got = play(*policy_on_device(true));
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size()) << "answer " << i;
    for (std::size_t k = 0; k < got[i].size(); ++k) ASSERT_NEAR(got[i][k], want[i][k], 1e-4) << i << ", " << k;
  }
}

TEST_F(PolicyOnDeviceTest, GraphsChangeNoBit) {
  const auto want = play(*policy_on_device(false));
  EXPECT_EQ(device::standin::report().graph_launches, 0U);
  EXPECT_EQ(play(*policy_on_device(true)), want);
  EXPECT_EQ(device::standin::report().graph_launches > 0, device::standin::counts());
}

}  // namespace
}  // namespace troupe::workers

// The inference forward on a device, on the stand-ins of the CUDA runtime and cuBLASLt, or with label gpu on hardware:
// against the same on cores, by graphs and kernel by kernel, and no finding of what the stand-ins check.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/kernels/first_device.h"
#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

const TinyShape kPlain{.name = "plain", .blocks = 3, .max_blocks = 3};
const TinyShape kImage{.name = "image", .blocks = 3, .max_blocks = 3, .image_to_video = true};

class InferDeviceTest : public testing::FirstDeviceTest {
 protected:
  /// Two samples, heads of 16 channels.
  static InferSetup make_setup(const TinyShape& shape, at::ScalarType dtype) {
    InferSetup setup(shape, 2, dtype);
    setup.config.dit.dim = 32;
    setup.parameters = testing::random_parameters(dit_units(setup.config), 5, dtype);
    return setup;
  }

  /// Two episodes at different frames, both branches, in one forward after the other: velocities of three steps, then
  /// of one more when the first episode has seen another block and a third has begun, so that the store has grown.
  static std::vector<Velocities> call(const InferSetup& setup, const InferDevice& where, bool self_only = false) {
    auto dit = setup.make(self_only, where);
    const auto nfpb = setup.shape.frames_per_block;
    auto first = setup.episode(dit, 0, 1, 1, 2), second = setup.episode(dit, 1, 1, 0, 2);
    std::vector<Velocities> all;
    const auto evaluate = [&](std::int64_t blocks, double t) {
      DitEpisode* const episodes[] = {first.get(), second.get()};
      const auto a = setup.noisy(0, 1, blocks, t, t / 2), b = setup.noisy(1, 1, 0, t, t / 2);
      all.push_back(dit.evaluate(episodes, {at::cat({a.video, b.video}), at::cat({a.actions, b.actions}),
                                            at::cat({a.states, b.states}), t, t / 2}));
    };
    for (const double t : {900., 600., 300.}) evaluate(1, t);
    DitEpisode* const longer[] = {first.get()};
    dit.prefill(longer, setup.of(batch_keys::kCleanLatents, 0, 1).narrow(2, 1 + nfpb, nfpb));
    const auto third = setup.episode(dit, 0, 2, 0, 2);
    evaluate(2, 900);
    return all;
  }

  static void expect_near(const std::vector<Velocities>& got, const std::vector<Velocities>& want, double share) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(relative_l2(got[i].video, want[i].video), share) << "evaluation " << i;
      EXPECT_LE(relative_l2(got[i].actions, want[i].actions), share) << "evaluation " << i;
    }
  }
};

TEST_F(InferDeviceTest, VelocitiesInF32AreThoseOfTheCores) {
  for (const auto& shape : {kPlain, kImage}) {
    for (const bool self_only : {false, true}) {
      const auto setup = make_setup(shape, at::kFloat);
      expect_near(call(setup, {device_.get()}, self_only), call(setup, {}, self_only), 1e-5);
    }
  }
}

TEST_F(InferDeviceTest, VelocitiesInBf16FollowTheCores) {
  const auto setup = make_setup(kPlain, at::kBFloat16);
  expect_near(call(setup, {device_.get()}), call(setup, {}), 2e-2);
}

TEST_F(InferDeviceTest, GraphsChangeNoBit) {
  const auto setup = make_setup(kPlain, at::kBFloat16);
  const auto want = call(setup, {device_.get(), /*graphs=*/false});
  EXPECT_EQ(device::standin::report().graph_launches, 0U);
  const auto got = call(setup, {device_.get(), /*graphs=*/true});
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].video, want[i].video)) << "evaluation " << i;
    EXPECT_TRUE(at::equal(got[i].actions, want[i].actions)) << "evaluation " << i;
  }
  EXPECT_EQ(device::standin::report().graph_launches > 0, device::standin::counts());
}

}  // namespace
}  // namespace troupe::model

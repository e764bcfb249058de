// DreamZero as a policy that learns, with its transformer on a device, on the stand-ins of the CUDA runtime and
// cuBLASLt, or with label gpu on hardware: what it draws by the weights of one version and the next, against cores.
#include <gmock/gmock.h>

#include "model/wan/lora.h"
#include "tests/kernels/first_device.h"
#include "tests/model/wan/policy/dreamzero_fixture.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kRows = 3;

/// Heads of 16 channels.
DreamZeroCase with_heads(DreamZeroCase c) {
  c.model.dit.dim = 32;
  return c;
}

/// As after an update.
UnitViews moved(const UnitViews& views) {
  UnitViews all;
  for (const auto& [unit, view] : views) {
    all[unit].set_adapter_scale(view.adapter_scale());
    for (const auto& [name, tensor] : view.tensors()) all[unit].set(name, 1.1 * tensor.detach());
  }
  return all;
}

class DreamZeroDeviceTest : public testing::FirstDeviceTest {
 protected:
  /// `frozen`: with adapters.
  void expect_acts_as_on_cores(const DreamZeroCase& c, const UnitViews& views,
                               const std::shared_ptr<const FrozenTransformer>& frozen = nullptr) {
    const auto observation = testing::draw_observation(c.shape, kRows, 2);
    const auto keys = testing::row_keys(kRows, 200);
    const auto cores = testing::make_dreamzero(c, {.frozen = frozen}).value();
    const auto device = testing::make_dreamzero(c, {.frozen = frozen, .device = device_}).value();
    const auto act = [&](const auto& net, const UnitViews& with, std::optional<WeightsVersion> version) {
      return net->act(with, {observation, 9, keys, false, c.policy.flow.noise_level, version});
    };
    const UnitViews later = moved(views);
    const auto want = act(cores, views, {}), want_later = act(cores, later, {});
    EXPECT_GT(testing::max_difference(want.action, want_later.action), 1e-2);

    const auto first = act(device, views, WeightsVersion{1, 1});
    expect_near(first, want);
    // graphs are captured, then launched; of a version that it has it reads no weight
    for (int call = 0; call < 2; ++call) {
      const auto again = act(device, later, WeightsVersion{1, 1});
      EXPECT_TRUE(at::equal(again.action, first.action));
      EXPECT_TRUE(at::equal(again.logp, first.logp));
    }
    expect_near(act(device, later, WeightsVersion{1, 2}), want_later);
    expect_near(act(device, views, WeightsVersion{2, 2}), want);
    expect_near(act(device, later, std::nullopt), want_later);
    expect_near(act(device, views, std::nullopt), want);
    EXPECT_EQ(device::standin::report().graph_launches > 0, device::standin::counts());
  }

 private:
  static void expect_near(const ActResult& got, const ActResult& want) {
    testing::expect_near(got.action, want.action, 1e-4, "actions");
    testing::expect_near(got.logp, want.logp, 1e-3, "log-probabilities");
    for (const auto& [name, tensor] : want.extra) testing::expect_near(got.extra.at(name), tensor, 1e-4, name);
  }
};

TEST_F(DreamZeroDeviceTest, EachVersionOfTheWeightsActsAsOnCores) {
  const auto c = with_heads(testing::dreamzero_case());
  expect_acts_as_on_cores(c, testing::act_dreamzero(c, kRows).views);
}

TEST_F(DreamZeroDeviceTest, EachVersionOfAdaptersActsAsOnCores) {
  const auto c = with_heads(testing::adapted_case());
  const auto chain = training_units(c.model);
  const auto draw = [](const std::vector<UnitSpec>& units, std::uint64_t seed) {
    return testing::by_name(units, testing::start_parameters(units, seed, 0.2));
  };
  expect_acts_as_on_cores(c, draw(std::vector{state_units(chain).back()}, 7),
                          std::make_shared<const testing::GivenTransformer>(draw(chain, 11)));
}

}  // namespace
}  // namespace troupe::model

#include "workers/pipeline/device_timing.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

/// Two ranks in each of two replicas, one unit.
ArenaPlan small_plan() {
  StepShape shape{.world = 2, .replicas = 2, .units = {}};
  shape.chain = 1;
  shape.units.push_back({.name = "unit", .padded = 64});
  return ArenaPlan(shape);
}

DeviceRates small_rates() {
  DeviceRates rates;
  rates.products = 100, rates.attention = 10, rates.memory = 1000, rates.link = 5, rates.offload = 2;
  rates.kernel_launch = 2, rates.graph_launch = 3, rates.kernel_gap = 0.5, rates.collective = 7, rates.hop = 0.25;
  return rates;
}

/// A product of 2 s, attention of 4 s by two calls, 6 s of row kernels by three calls, and what the host prepares.
DeviceStep small_step(bool graphs) {
  UnitKernels unit;
  unit.forward = {{.family = KernelFamily::product_nt, .m = 5, .n = 5, .k = 4},
                  {.family = KernelFamily::attention, .m = 5, .n = 1, .k = 1, .heads = 1, .calls = 2},
                  {.family = KernelFamily::norm, .bytes = 2000, .calls = 3},
                  {.family = KernelFamily::serial, .calls = 25}};
  unit.backward = {{.family = KernelFamily::norm, .bytes = 1000}};
  return {.units = {unit}, .graphs = graphs};
}

OpSeconds seconds_of(OpKind kind, const DeviceStep& step, const DeviceRates& rates, const Work& work = {}) {
  Op op{.kind = kind, .unit = 0};
  op.work = work;
  return seconds_on_device(op, small_plan(), step, rates);
}

TEST(DeviceTimingTest, APassIsItsKernelsAndOneGraph) {
  const auto seconds = seconds_of(OpKind::forward, small_step(true), small_rates());
  EXPECT_DOUBLE_EQ(seconds.products, 2);
  EXPECT_DOUBLE_EQ(seconds.attention, 4);
  EXPECT_DOUBLE_EQ(seconds.moving, 6);
  EXPECT_DOUBLE_EQ(seconds.launch, 3 + 6 * 0.5);
}

TEST(DeviceTimingTest, LaunchesOfKernelsTakeWhatTheDeviceDoesNotHide) {
  auto rates = small_rates();
  // 12 s of launches behind 12 s of work: gaps alone
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::forward, small_step(false), rates).launch, 6 * 0.5);
  rates.kernel_launch = 5;
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::forward, small_step(false), rates).launch, 6 * 5 - 12);
}

TEST(DeviceTimingTest, AWholeNetworkIsItsUnitsPasses) {
  const auto all = seconds_of(OpKind::network, small_step(true), small_rates());
  EXPECT_DOUBLE_EQ(all.moving, 6 + 1);
  EXPECT_DOUBLE_EQ(all.launch, 3 + 6 * 0.5 + 3 + 0.5);
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::backward, small_step(true), small_rates()).moving, 1);
}

TEST(DeviceTimingTest, CollectivesStartAndCountTheirRanks) {
  const auto step = small_step(true);
  const auto rates = small_rates();
  Work sent;
  sent.sent_bytes = 10;
  for (const OpKind kind : {OpKind::gather, OpKind::exchange, OpKind::replicate}) {
    const auto seconds = seconds_of(kind, step, rates, sent);
    EXPECT_DOUBLE_EQ(seconds.launch, 7 + 0.25);
    EXPECT_DOUBLE_EQ(seconds.sending, 2);
  }
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::agree, step, rates).launch, 7 + 3 * 0.25 + 2);
}

TEST(DeviceTimingTest, OtherOperationsMoveBytes) {
  const auto step = small_step(true);
  const auto rates = small_rates();
  Work work;
  work.moved_bytes = 3000, work.offloaded_bytes = 8;
  const auto update = seconds_of(OpKind::update, step, rates, work);
  EXPECT_DOUBLE_EQ(update.moving, 3);
  EXPECT_DOUBLE_EQ(update.launch, 2);
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::fetch, step, rates, work).offloading, 4);
  EXPECT_DOUBLE_EQ(seconds_of(OpKind::publish, step, rates, work).offloading, 1500);
}

TEST(DeviceTimingDeathTest, WorkWithoutARateIsADefect) {
  auto rates = small_rates();
  rates.attention = 0;
  EXPECT_DEATH(seconds_of(OpKind::forward, small_step(true), rates), "attention needs a rate");
}

}  // namespace
}  // namespace troupe::workers

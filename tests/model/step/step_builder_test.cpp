#include "model/step/step_builder.h"

#include <gmock/gmock.h>

#include "model/step/step_text.h"
#include "tests/model/step/random_step.h"

namespace troupe::model {
namespace {

int count(const std::vector<Op>& operations, OpKind kind, int unit = -1) {
  return static_cast<int>(std::count_if(operations.begin(), operations.end(), [&](const Op& op) {
    return op.kind == kind && (unit < 0 || op.unit == unit);
  }));
}

std::vector<Op> steps_of(int units, int world, int param_slots, int grad_slots, int micro_batches) {
  return whole_step(chain_shape(std::vector<std::int64_t>(static_cast<std::size_t>(units), world * 1024), world,
                                param_slots, grad_slots),
                    micro_batches)
      .operations;
}

TEST(StepBuilderTest, EveryUnitRunsBothWaysAndIsSummedOncePerMicroBatch) {
  for (int units = 2; units <= 9; ++units) {
    for (int k = 1; k <= units; ++k) {
      for (int g = 1; g <= 3; ++g) {
        for (const int micro : {1, 2, 3}) {
          const auto operations = steps_of(units, 2, k, g, micro);
          for (int u = 0; u < units; ++u) {
            for (const OpKind kind : {OpKind::forward, OpKind::backward, OpKind::exchange, OpKind::sum})
              ASSERT_EQ(count(operations, kind, u), micro);
            ASSERT_EQ(count(operations, OpKind::update, u), 1);
          }
        }
      }
    }
  }
}

TEST(StepBuilderTest, GathersRunAheadByKMinusOneUnits) {
  std::vector<int> before_first_forward;
  for (const Op& op : steps_of(5, 2, 3, 2, 1)) {
    if (op.kind == OpKind::forward) break;
    if (op.kind == OpKind::gather) before_first_forward.push_back(op.unit);
  }
  EXPECT_THAT(before_first_forward, ::testing::ElementsAre(0, 1, 2));
}

TEST(StepBuilderTest, TheLastUnitsStayForTheTurnAndTheFirstForTheNextMicroBatch) {
  EXPECT_EQ(count(steps_of(7, 2, 3, 2, 2), OpKind::gather), 7 + 4 + 4 + 4);
}

TEST(StepBuilderTest, WithASlotForEveryUnitEachIsGatheredOncePerStep) {
  EXPECT_EQ(count(steps_of(7, 2, 7, 2, 4), OpKind::gather), 7);
}

TEST(StepBuilderTest, ARankThatIsAloneMovesNothingAndSumsFromTheSecondMicroBatchOn) {
  const auto operations = steps_of(5, 1, 3, 2, 3);
  EXPECT_EQ(count(operations, OpKind::gather) + count(operations, OpKind::exchange), 0);
  EXPECT_EQ(count(operations, OpKind::sum), 2 * 5);
}

TEST(StepBuilderTest, AReduceScatterStagesOnePart) {
  StepShape shape = chain_shape({2048, 2048, 2048}, 2, 2, 1);
  const auto staged = ArenaPlan(shape).bytes(ArenaKind::staging);
  shape.reduce_scatters = true;
  const auto step = whole_step(shape, 2);
  EXPECT_EQ(count(step.operations, OpKind::exchange), 0);
  EXPECT_EQ(count(step.operations, OpKind::reduce_scatter), 2 * 3);
  EXPECT_EQ(step.plan->bytes(ArenaKind::staging), staged / 2);
  for (const Op& op : step.operations) EXPECT_TRUE(op.kind != OpKind::sum || op.parts == 1);
}

TEST(StepBuilderTest, WhatTheSlotsHoldIsNotGatheredAgainUntilItChanges) {
  const ArenaPlan plan(chain_shape({2048, 2048, 2048, 2048}, 2, 4, 1));
  StepBuilder builder(plan, StepState::empty(plan.shape()));
  builder.forward_only();
  builder.forward_only();
  EXPECT_EQ(count(builder.operations(), OpKind::gather), 4);
  builder.micro_batch(std::vector<bool>(4, true), Differentiation::units);
  builder.vote();
  builder.update({true, false, true, false});
  EXPECT_THAT(builder.state().held, ::testing::ElementsAre(-1, 1, -1, 3));
  builder.forward_only();
  EXPECT_EQ(count(builder.operations(), OpKind::gather), 6);
}

TEST(StepBuilderTest, AFrozenUnitIsRunBothWaysAndNeitherSummedNorUpdated) {
  StepShape shape = chain_shape({2048, 2048, 2048}, 2, 2, 1);
  shape.units[1].keep = UnitKeep::frozen;
  const ArenaPlan plan(shape);
  StepBuilder builder(plan, StepState::empty(shape));
  builder.micro_batch({true, false, true}, Differentiation::units);
  EXPECT_EQ(count(builder.operations(), OpKind::backward, 1), 1);
  EXPECT_EQ(count(builder.operations(), OpKind::exchange, 1), 0);
  EXPECT_THAT(builder.state().accumulated, ::testing::ElementsAre(true, false, true));
}

TEST(StepBuilderTest, ThePrintedFormIsTheOneInTheManual) {
  const auto step = whole_step(chain_shape({2048, 2048, 2048}, 2, 2, 1), 1);
  EXPECT_EQ(to_string(step.operations, *step.plan), R"(   0 copy      input m0
   1 gather    gather u0 m0 p0
   2 gather    gather u1 m0 p1
   3 compute   forward u0 m0 p0                after 0, 1
   4 gather    gather u2 m0 p0                 after 3
   5 compute   forward u1 m0 p1                after 2
   6 compute   forward u2 m0 p0                after 4
   7 compute   backward u2 m0 p0 g0
   8 reduce    exchange u2 m0 g0               after 7
   9 reduce    sum u2 m0 g0
  10 gather    gather u0 m0 p0                 after 7
  11 compute   backward u1 m0 p1 g0            after 8
  12 reduce    exchange u1 m0 g0               after 11
  13 reduce    sum u1 m0 g0
  14 compute   backward u0 m0 p0 g0            after 10, 12
  15 reduce    exchange u0 m0 g0               after 14
  16 reduce    sum u0 m0 g0
  17 optimizer square u0                       after 16
  18 optimizer square u1
  19 optimizer square u2
  20 reduce    agree                           after 19
  21 optimizer clip                            after 20
  22 optimizer update u0
  23 optimizer update u1
  24 optimizer update u2
)");
}

}  // namespace
}  // namespace troupe::model

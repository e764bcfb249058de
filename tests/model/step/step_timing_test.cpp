#include "model/step/step_timing.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/model/step/random_step.h"

namespace troupe::model {
namespace {

/// An operation of so many seconds, which stand in its work: of products on the stream compute, else of sending.
Op op_on(OpStream stream, double seconds, std::vector<int> waits = {}) {
  Op op{
      .kind = stream == OpStream::compute ? OpKind::forward : OpKind::gather, .stream = stream, .unit = 0, .micro = 0};
  op.work.sent_bytes = seconds;
  op.waits = std::move(waits);
  return op;
}

OpSeconds seconds_of(const Op& op) {
  const double seconds = op.work.sent_bytes + op.work.moved_bytes + op.work.offloaded_bytes;
  return op.stream == OpStream::compute ? OpSeconds{.products = seconds} : OpSeconds{.sending = seconds};
}

StepTiming timed(const std::vector<Op>& operations, StreamSharing sharing = StreamSharing::beside) {
  return time_step(operations, seconds_of, sharing);
}

TEST(StepTimingTest, AnOperationTakesItsSecondsOneAfterTheOther) {
  const std::vector<Op> operations = {op_on(OpStream::compute, 0)};
  const auto timing = time_step(
      operations, [](const Op&) { return OpSeconds{.launch = 0.5, .products = 2, .attention = 3, .moving = 4}; },
      StreamSharing::beside);
  EXPECT_DOUBLE_EQ(timing.seconds, 0.5 + 2 + 3 + 4);
  EXPECT_DOUBLE_EQ(timing.products, 2);
  EXPECT_DOUBLE_EQ(timing.attention, 3);
  EXPECT_DOUBLE_EQ(timing.moving, 4);
}

TEST(StepTimingTest, StreamsRunBesideEachOtherAndWaitWhereTheySay) {
  const std::vector<Op> operations = {
      op_on(OpStream::gather, 3),          // 0 to 3
      op_on(OpStream::compute, 1),         // 0 to 1, beside it
      op_on(OpStream::compute, 1, {0}),    // 3 to 4: 2 s of waiting
      op_on(OpStream::gather, 0.5),        // 3 to 3.5, hidden
      op_on(OpStream::compute, 0.5, {3}),  // 4 to 4.5
      op_on(OpStream::reduce, 1, {4}),     // 4.5 to 5.5: behind all that computes
  };
  const auto timing = timed(operations);
  EXPECT_DOUBLE_EQ(timing.operations[2].begin, 3);
  EXPECT_DOUBLE_EQ(timing.operations[4].end, 4.5);
  EXPECT_DOUBLE_EQ(timing.seconds, 5.5);
  EXPECT_DOUBLE_EQ(timing.exposed_communication, 2 + 1);
  EXPECT_THAT(timing.critical_path, ::testing::ElementsAre(0, 2, 4, 5));
  EXPECT_DOUBLE_EQ(timing.busy[static_cast<std::size_t>(OpStream::compute)], 2.5);
}

TEST(StepTimingTest, StreamsOnTheSameCoresTakeTurnsInTheOrderOfTheOperations) {
  const std::vector<Op> operations = {op_on(OpStream::gather, 3), op_on(OpStream::compute, 1),
                                      op_on(OpStream::reduce, 1, {1}), op_on(OpStream::compute, 2)};
  const auto timing = timed(operations, StreamSharing::in_turn);
  EXPECT_DOUBLE_EQ(timing.seconds, 3 + 1 + 1 + 2);
  EXPECT_DOUBLE_EQ(timing.products, 3);
  EXPECT_DOUBLE_EQ(timing.exposed_communication, 4);
  EXPECT_THAT(timing.critical_path, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(StepTimingTest, EveryOperationOfEveryStepHasATime) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto step = random_step(seed);
    const auto timing = timed(step.operations);
    double last_end = 0;
    for (std::size_t i = 0; i < step.operations.size(); ++i) {
      ASSERT_LE(timing.operations[i].begin, timing.operations[i].end);
      for (const int wait : step.operations[i].waits)
        ASSERT_GE(timing.operations[i].begin, timing.operations[static_cast<std::size_t>(wait)].end);
      last_end = std::max(last_end, timing.operations[i].end);
    }
    EXPECT_EQ(timing.seconds, last_end);
    // the critical path has no gaps
    double at = 0;
    for (const int op : timing.critical_path) {
      ASSERT_EQ(timing.operations[static_cast<std::size_t>(op)].begin, at) << "seed " << seed;
      at = timing.operations[static_cast<std::size_t>(op)].end;
    }
    EXPECT_EQ(at, timing.seconds);
  }
}

TEST(StepTimingTest, TheTraceHasEveryOperationOnItsStreamsTrack) {
  const auto step = random_step(3);
  const auto timing = timed(step.operations);
  const auto trace = nlohmann::json::parse(to_chrome_trace(timing, step.operations, *step.plan));
  std::size_t operations = 0, names = 0;
  for (const auto& event : trace.at("traceEvents")) {
    operations += event.at("ph") == "X";
    names += event.at("ph") == "M";
  }
  EXPECT_EQ(operations, step.operations.size());
  EXPECT_EQ(names, kOpStreams);
}

TEST(StepTimingTest, MoreSlotsHideMoreOfTheGathers) {
  double before = 1e9;
  for (const int slots : {1, 2, 3, 6}) {
    StepShape shape = chain_shape(std::vector<std::int64_t>(6, 4096), 2, slots, 2);
    const auto timing = time_step(
        whole_step(shape, 1).operations,
        [](const Op& op) {
          return OpSeconds{.products = op.kind == OpKind::forward    ? 1e3
                                       : op.kind == OpKind::backward ? 2e3
                                                                     : 0,
                           .sending = op.work.sent_bytes / 10};
        },
        StreamSharing::beside);
    EXPECT_LE(timing.exposed_communication, before);
    before = timing.exposed_communication;
  }
}

}  // namespace
}  // namespace troupe::model

// The waits of steps, against the hazard checker and against a search of its own.
#include <gmock/gmock.h>

#include "model/step/happens_before.h"
#include "model/step/hazards.h"
#include "model/step/step_text.h"
#include "tests/model/step/random_step.h"

namespace troupe::model {
namespace {

/// Whether a path of streams and waits leads from one operation to a later one: a search that knows no clocks.
bool is_reachable(const std::vector<Op>& operations, int from, int to) {
  std::vector<bool> is_after(operations.size(), false);
  is_after[static_cast<std::size_t>(from)] = true;
  for (int i = from + 1; i <= to; ++i) {
    const Op& op = operations[static_cast<std::size_t>(i)];
    const auto follows = [&](int earlier) { return is_after[static_cast<std::size_t>(earlier)]; };
    bool after = std::any_of(op.waits.begin(), op.waits.end(), follows);
    for (int earlier = i - 1; earlier >= from && !after; --earlier) {
      if (operations[static_cast<std::size_t>(earlier)].stream == op.stream) {
        after = follows(earlier);
        break;
      }
    }
    is_after[static_cast<std::size_t>(i)] = after;
  }
  return is_after[static_cast<std::size_t>(to)];
}

TEST(EventOrderTest, TenThousandRandomStepsAreFreeOfHazards) {
  std::size_t operations = 0, waits = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const auto step = random_step(seed);
    const auto hazards = find_hazards(step.operations);
    ASSERT_TRUE(hazards.empty()) << "seed " << seed << ": " << to_string(hazards.front(), step.operations, *step.plan);
    operations += step.operations.size();
    for (const Op& op : step.operations) waits += op.waits.size();
  }
  EXPECT_GT(operations, 500'000U);
  EXPECT_GT(waits, 100'000U);
}

TEST(EventOrderTest, EveryWaitThatIsTakenAwayShowsAsAHazardOrIsImplied) {
  int removed = 0, implied_count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto step = random_step(seed);
    const auto implied = implied_waits(step.operations);
    implied_count += static_cast<int>(implied.size());
    for (std::size_t i = 0; i < step.operations.size(); ++i) {
      for (std::size_t w = 0; w < step.operations[i].waits.size(); ++w) {
        auto broken = step.operations;
        const int awaited = broken[i].waits[w];
        broken[i].waits.erase(broken[i].waits.begin() + static_cast<std::ptrdiff_t>(w));
        const bool still_after = is_reachable(broken, awaited, static_cast<int>(i));
        const bool is_called_implied = std::find(implied.begin(), implied.end(),
                                                 std::pair(static_cast<int>(i), static_cast<int>(w))) != implied.end();
        EXPECT_EQ(still_after, is_called_implied) << "seed " << seed << ", operation " << i;
        EXPECT_NE(find_hazards(broken).empty(), !still_after)
            << "seed " << seed << ": " << title(step.operations[i], *step.plan) << " without its wait for " << awaited;
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 1'000);
  EXPECT_EQ(implied_count, 0);
}

TEST(EventOrderTest, TheCheckerAgreesWithASearchForAPath) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto step = random_step(seed);
    const auto clocks = clocks_of(step.operations);
    for (int to = 0; to < static_cast<int>(step.operations.size()); ++to) {
      for (int from = 0; from < to; ++from) {
        ASSERT_EQ(
            is_before(step.operations[static_cast<std::size_t>(from)], from, clocks[static_cast<std::size_t>(to)]),
            is_reachable(step.operations, from, to))
            << "seed " << seed << ", " << from << " and " << to;
      }
    }
  }
}

TEST(EventOrderTest, TheDefaultStepHoldsNoImpliedWait) {
  for (const int world : {1, 2, 8}) {
    const auto step = whole_step(chain_shape(std::vector<std::int64_t>(32, 8 * 1024), world, 3, 2), 2);
    EXPECT_TRUE(find_hazards(step.operations).empty());
    EXPECT_TRUE(implied_waits(step.operations).empty());
  }
}

TEST(HazardTest, TwoStreamsThatTouchOneBufferAreNamed) {
  const ArenaPlan plan(chain_shape({2048, 2048}, 2, 1, 1));
  const std::vector<Op> operations = {
      {.kind = OpKind::forward, .unit = 0, .micro = 0, .accesses = {{plan.parameters(0), false}}},
      {.kind = OpKind::gather,
       .stream = OpStream::gather,
       .unit = 1,
       .micro = 0,
       .accesses = {{plan.parameters(1), true}}}};
  const auto hazards = find_hazards(operations);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(to_string(hazards[0], operations, plan),
            "forward u0 m0 p0 (0) and gather u1 m0 p0 (1) both touch slots [0, 8192)");
}

}  // namespace
}  // namespace troupe::model

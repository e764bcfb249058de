#include "workers/learner/rl/minibatch_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/loss/rl_keys.h"
#include "tests/support/tensor_checks.h"

namespace troupe::workers {
namespace {

at::Tensor indices(const std::vector<std::int64_t>& numbers) { return at::tensor(numbers, at::kLong); }

/// Twelve rows of every type that an iteration has, two of which do not count.
RolloutRows twelve_rows() {
  RolloutRows rows;
  rows.count = 12;
  rows.rows[rl_keys::kState] = at::arange(36, at::kFloat).view({12, 3});
  rows.rows[rl_keys::kVersion] = at::arange(12, at::kLong).view({12, 1});
  rows.rows["obs.camera"] = at::arange(24, at::kByte).view({12, 1, 1, 2});
  rows.rows[rl_keys::kAdvantage] = at::arange(12, at::kFloat).square().view({12, 1});
  rows.valid_cells = at::ones({12, 1}, at::kBool);
  rows.valid_cells[1] = false;
  rows.valid_cells[7] = false;
  return rows;
}

TEST(MinibatchRowsTest, APartHasTheRowsAskedForInTheirOrder) {
  RolloutRows rows = twelve_rows();
  // a column of a wider tensor
  rows.rows["column"] = at::arange(24, at::kFloat).view({12, 2}).narrow(1, 1, 1);
  MinibatchRows parts(rows, 4);
  for (const std::vector<std::int64_t>& chosen : {std::vector<std::int64_t>{11, 0, 5, 5}, {2, 3, 4, 9}}) {
    const Batch& part = parts.gather(chosen, nullptr);
    ASSERT_EQ(part.size(), rows.rows.size());
    for (const auto& [name, tensor] : rows.rows)
      EXPECT_TRUE(part.at(name).equal(tensor.index_select(0, indices(chosen)))) << name;
  }
}

TEST(MinibatchRowsTest, SequencesStayTogetherAndHaveOneMemoryEach) {
  RolloutRows rows = twelve_rows();  // three steps of four sequences
  rows.sequence = 3;
  rows.rows[std::string(rl_keys::kMemoryPrefix) + "actor"] = at::arange(8, at::kFloat).view({4, 2});
  MinibatchRows parts(rows, 6);
  EXPECT_EQ(parts.num_sequences(), 4);
  const Batch& part = parts.gather(std::vector<std::int64_t>{3, 1}, nullptr);
  EXPECT_TRUE(part.at(rl_keys::kVersion).flatten().equal(indices({3, 1, 7, 5, 11, 9})));
  EXPECT_TRUE(part.at("memory.actor").equal(at::tensor({6.0F, 7.0F, 2.0F, 3.0F}).view({2, 2})));
}

TEST(MinibatchRowsTest, CountsAreThoseOfTheCellsThatCount) {
  RolloutRows rows = twelve_rows();
  rows.rows.at(rl_keys::kAdvantage)[4] = std::numeric_limits<float>::quiet_NaN();
  const MinibatchRows parts(rows, 4);
  const std::vector<std::int64_t> chosen{1, 3, 4, 10};
  const MinibatchRows::Counted counted = parts.count(chosen);
  EXPECT_EQ(counted.cells, 4);
  EXPECT_EQ(counted.valid, 3);
  const AdvantageMoments wanted = advantage_moments(rows.rows.at(rl_keys::kAdvantage).index_select(0, indices(chosen)),
                                                    rows.valid_cells.index_select(0, indices(chosen)));
  EXPECT_EQ(counted.advantages.count, wanted.count);
  EXPECT_EQ(counted.advantages.sum, wanted.sum);
  EXPECT_EQ(counted.advantages.sum_of_squares, wanted.sum_of_squares);
}

TEST(MinibatchRowsTest, AdvantagesOfAPartAreNormalisedByTheMomentsGiven) {
  const RolloutRows rows = twelve_rows();
  MinibatchRows parts(rows, 4);
  const std::vector<std::int64_t> chosen{0, 2, 3, 10};
  const AdvantageMoments moments = parts.count(chosen).advantages;
  const at::Tensor wanted = normalise(rows.rows.at(rl_keys::kAdvantage).index_select(0, indices(chosen)), moments);
  for (int again = 0; again < 2; ++again)
    testing::expect_near(parts.gather(chosen, &moments).at(rl_keys::kAdvantage), wanted, 1e-6, "advantages");
}

}  // namespace
}  // namespace troupe::workers

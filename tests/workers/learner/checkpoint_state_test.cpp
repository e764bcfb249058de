#include "workers/checkpoint/checkpoint_state.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

using testing::CheckpointFixture;

class CheckpointStateTest : public CheckpointFixture {};

TEST_F(CheckpointStateTest, ParametersThatLieElsewhereAreFoundByName) {
  const Manifest written = manifest(2);
  const auto reader = CheckpointReader::open(write_and_commit(written)).value();
  auto units = written.units;
  units[0] = unit("embed", "embed", {{"embed.bias", {101}, 0, 0}, {"embed.weight", {37, 101}, 0, 0}});
  ASSERT_TRUE(reader->check_layout(units));
  const CheckpointState state(*reader, units);
  std::vector<float> want(static_cast<std::size_t>(units[0].numel), 0.0F);
  for (const ManifestParam& param : units[0].params) {
    const std::int64_t from = written.units[0].find(param.name)->offset;
    for (std::int64_t i = 0; i < param.numel; ++i)
      want[static_cast<std::size_t>(param.offset + i)] = value(written, 0, 1, from + i);
  }
  // whole, and pieces that begin and end inside of parameters and gaps
  for (const std::int64_t piece : {units[0].numel, std::int64_t{1000}, std::int64_t{17}}) {
    std::vector<float> got(want.size(), -1.0F);
    for (std::int64_t begin = 0; begin < units[0].numel; begin += piece) {
      const auto count = std::min(piece, units[0].numel - begin);
      ASSERT_TRUE(state.read(0, StateKind::m, begin, count, got.data() + begin));
    }
    EXPECT_EQ(got, want) << piece;
  }
}

}  // namespace
}  // namespace troupe::workers

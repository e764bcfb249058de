#include "env/block_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::env {
namespace {

EnvSpec two_fields() {
  EnvSpec spec;
  spec.id = "two-v1";
  spec.observation = {{.name = "state", .shape = {3}},
                      {.name = "rgb.front", .shape = {5, 7, 3}, .dtype = EnvDType::u8}};
  spec.info = {"x_position", "x_velocity"};
  return spec;
}

/// Every array of a layout: where it begins and how many bytes it has.
std::vector<std::pair<std::int64_t, std::int64_t>> arrays(const EnvSpec& spec, const BlockLayout& l) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::size_t f = 0; f < spec.observation.size(); ++f) {
    all.emplace_back(l.observation[f], l.rows * spec.observation[f].bytes());
    all.emplace_back(l.final_observation[f], l.rows * spec.observation[f].bytes());
  }
  const std::int64_t cells = l.rows * l.chunk;
  all.insert(
      all.end(),
      {{l.reward, cells * 4}, {l.terminated, cells}, {l.truncated, cells}, {l.valid, cells}, {l.success, cells}});
  all.insert(
      all.end(),
      {{l.executed, l.rows * 4}, {l.done, l.rows}, {l.lost, l.rows}, {l.episode, l.rows * 8}, {l.step, l.rows * 4}});
  all.insert(all.end(), {{l.episode_return, l.rows * 8}, {l.episode_length, l.rows * 4}, {l.episode_success, l.rows}});
  all.emplace_back(l.info, l.rows * l.info_count * 8);
  std::sort(all.begin(), all.end());
  return all;
}

TEST(BlockLayoutTest, ArraysDoNotOverlapAndEndWithinTheBuffer) {
  for (const std::int64_t rows : {1, 7, 64}) {
    for (const std::int64_t chunk : {1, 4}) {
      const auto layout = make_block_layout(two_fields(), rows, chunk);
      std::int64_t end = 0;
      for (const auto& [offset, bytes] : arrays(two_fields(), layout)) {
        EXPECT_GE(offset, end);
        end = offset + bytes;
      }
      EXPECT_LE(end, layout.bytes);
    }
  }
}

TEST(BlockLayoutTest, ATeamHasARowForEachAgentAndOneByteMoreOfThem) {
  EnvSpec spec = two_fields();
  const std::int64_t alone = make_block_layout(spec, 6, 2).bytes;
  spec.agents = 3;
  const BlockLayout layout = make_block_layout(spec, 2, 2);
  EXPECT_EQ(layout.rows, 6);
  EXPECT_EQ(layout.alive, alone);
  EXPECT_EQ(layout.bytes, alone + 64);
}

TEST(BlockLayoutTest, EveryArrayBeginsAtACacheLine) {
  const auto layout = make_block_layout(two_fields(), 7, 3);
  for (const auto& [offset, bytes] : arrays(two_fields(), layout)) EXPECT_EQ(offset % 64, 0);
  EXPECT_EQ(layout.bytes % 64, 0);
}

TEST(BlockLayoutTest, IsTheLayoutOfTheDocument) {
  // docs/env.md works this example out: CartPole with two environments.
  EnvSpec spec;
  spec.observation = {{.name = "state", .shape = {4}}};
  const auto l = make_block_layout(spec, 2, 1);
  EXPECT_EQ(l.observation, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(l.final_observation, (std::vector<std::int64_t>{64}));
  EXPECT_EQ(l.reward, 128);
  EXPECT_EQ(l.terminated, 192);
  EXPECT_EQ(l.truncated, 256);
  EXPECT_EQ(l.valid, 320);
  EXPECT_EQ(l.success, 384);
  EXPECT_EQ(l.executed, 448);
  EXPECT_EQ(l.done, 512);
  EXPECT_EQ(l.lost, 576);
  EXPECT_EQ(l.episode, 640);
  EXPECT_EQ(l.step, 704);
  EXPECT_EQ(l.episode_return, 768);
  EXPECT_EQ(l.episode_length, 832);
  EXPECT_EQ(l.episode_success, 896);
  EXPECT_EQ(l.info, 960);
  EXPECT_EQ(l.bytes, 960);
}

TEST(BlockLayoutTest, ViewsHaveOneElementPerRowOrCell) {
  const auto layout = make_block_layout(two_fields(), 3, 4);
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.bytes));
  const BlockView view{&layout, memory.data()};
  EXPECT_EQ(view.reward().size(), 12u);
  EXPECT_EQ(view.valid().size(), 12u);
  EXPECT_EQ(view.done().size(), 3u);
  EXPECT_EQ(view.episode().size(), 3u);
  EXPECT_EQ(view.info().size(), 6u);
}

}  // namespace
}  // namespace troupe::env

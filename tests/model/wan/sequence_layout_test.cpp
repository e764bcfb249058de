// Token order and visibility: the segments that attention runs over, as boolean masks.
#include "model/wan/sequence_layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/wan/dense_dit.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

SequenceLayout layout_5b(bool trimmed) {
  SequenceLayout layout;
  layout.frames = 9;
  layout.grid_rows = 5;
  layout.grid_cols = 10;
  layout.frames_per_block = 2;
  layout.blocks = 4;
  layout.actions_per_block = 24;
  layout.states_per_block = 1;
  layout.max_blocks = 4;
  layout.trimmed = trimmed;
  return layout;
}

/// Which reference token may read which, from an untrimmed layout's segments.
at::Tensor mask_of(const SequenceLayout& layout) {
  const auto rows = layout.reference_rows();
  const auto n = layout.tokens();
  auto mask = at::zeros({n, n}, at::TensorOptions().dtype(at::kByte));
  auto cells = mask.accessor<std::uint8_t, 2>();
  for (const auto& segment : layout.segments()) {
    for (auto q = segment.query.begin; q < segment.query.end; ++q) {
      for (const auto& keys : segment.keys) {
        for (auto k = keys.begin; k < keys.end; ++k)
          cells[rows[static_cast<std::size_t>(q)]][rows[static_cast<std::size_t>(k)]] = 1;
      }
    }
  }
  return mask;
}

std::int64_t count_pairs(const std::vector<AttentionSegment>& segments) {
  std::int64_t pairs = 0;
  for (const auto& s : segments) {
    for (const auto& keys : s.keys) pairs += s.query.size() * keys.size();
  }
  return pairs;
}

TEST(SequenceLayoutTest, Wan5bHasThePublishedTokensAndPairs) {
  const auto whole = layout_5b(false), trimmed = layout_5b(true);
  EXPECT_EQ(whole.tokens(), 1000);
  EXPECT_EQ(trimmed.tokens(), 900);
  EXPECT_EQ(count_pairs(whole.segments()), 286'204);
  // the dropped block's 100 queries read 450 keys each
  EXPECT_EQ(count_pairs(trimmed.segments()), 286'204 - 100 * 450);
}

TEST(SequenceLayoutTest, Wan14bHasThePublishedTokensAndPairs) {
  auto layout = layout_5b(false);
  layout.grid_rows = 22;
  layout.grid_cols = 40;
  EXPECT_EQ(layout.tokens(), 15'940);
  EXPECT_EQ(count_pairs(layout.segments()), 76'576'484);
  layout.trimmed = true;
  EXPECT_EQ(layout.tokens(), 14'180);
}

TEST(SequenceLayoutTest, QueriesCoverEveryRowOnceInOrder) {
  for (const bool trimmed : {true, false}) {
    const auto layout = layout_5b(trimmed);
    std::int64_t next = 0;
    for (const auto& segment : layout.segments()) {
      EXPECT_EQ(segment.query.begin, next);
      next = segment.query.end;
    }
    EXPECT_EQ(next, layout.tokens());
  }
}

TEST(SequenceLayoutTest, OneStatePerBlockCopiesItsValueAndTwoDoNot) {
  auto layout = layout_5b(true);
  for (const auto& s : layout.segments()) EXPECT_EQ(s.copies_value(), s.kind == AttentionSegment::Kind::state);
  layout.states_per_block = 2;
  for (const auto& s : layout.segments()) EXPECT_FALSE(s.copies_value());
}

TEST(SequenceLayoutTest, SegmentsEqualTheVisibilityTable) {
  const testing::TinyShape shape{
      .name = "", .blocks = 4, .actions_per_block = 4, .states_per_block = 2, .max_blocks = 2};
  auto layout = layout_5b(false);
  layout.grid_rows = 1;
  layout.grid_cols = 2;
  layout.actions_per_block = 4;
  layout.states_per_block = 2;
  layout.max_blocks = 2;
  EXPECT_TRUE(at::equal(mask_of(layout).to(at::kBool), testing::dense_mask(shape, 1, 2)));
}

class GoldenVisibilityTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenVisibilityTest, MasksMeasuredOnTheReferenceEqualOurs) {
  const auto tensors = testing::load_safetensors(GetParam().tensors());
  const auto masks = GetParam().json.value("masks", nlohmann::json::array());
  int compared = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const auto want = tensors.find("out.mask" + std::to_string(i));
    if (want == tensors.end()) continue;
    const auto& m = masks[i];
    SequenceLayout layout;
    layout.frames = m.at("F").get<std::int64_t>();
    layout.grid_rows = 1;
    layout.grid_cols = m.at("frame_tokens").get<std::int64_t>();
    layout.frames_per_block = m.at("nfpb").get<std::int64_t>();
    layout.blocks = (layout.frames - 1) / layout.frames_per_block;
    layout.actions_per_block = m.at("napb").get<std::int64_t>();
    layout.states_per_block = m.at("nspb").get<std::int64_t>();
    layout.max_blocks = m.at("max_chunk_size").get<std::int64_t>();
    layout.trimmed = false;
    EXPECT_TRUE(at::equal(mask_of(layout), want->second.to(at::kByte))) << "mask " << i;
    ++compared;
  }
  EXPECT_GT(compared, 0) << "the case describes no mask that it holds";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenVisibilityTest, ::testing::ValuesIn(golden_cases("dit", "visibility")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenVisibilityTest);

}  // namespace
}  // namespace troupe::model

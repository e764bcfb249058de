// Text features of a micro-batch without what would be computed twice.
#include "model/wan/text_rows.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using testing::kTinyText;
using testing::TinyPrompt;

at::Tensor context_of(const std::vector<TinyPrompt>& prompts) {
  const Batch like{{batch_keys::kContext, at::empty({1, 1, 5})}};
  return testing::with_prompts(like, prompts, kTinyText).at(batch_keys::kContext);
}

struct SeenRows {
  std::int64_t begin, end, n;
  friend bool operator==(const SeenRows&, const SeenRows&) = default;
  friend std::ostream& operator<<(std::ostream& out, const SeenRows& r) {
    return out << "[" << r.begin << ", " << r.end << ") the last " << r.n << " times";
  }
};

SeenRows seen_by(const TextRows& text, std::int64_t sample) {
  const auto at = [&](std::int64_t i) { return text.of_sample_B3[sample][i].item<std::int64_t>(); };
  return {at(0), at(1), at(2)};
}

/// The features that the rows of a sample stand for.
at::Tensor written_out(const TextRows& text, std::int64_t sample) {
  const auto [begin, end, n] = seen_by(text, sample);
  const auto rows = text.rows_1TC[0];
  return at::cat({rows.narrow(0, begin, end - begin), rows.narrow(0, end - 1, 1).expand({n - 1, -1})}, 0);
}

TEST(TextRowsTest, RowsOfASampleStandForItsFeaturesAndNoPromptIsThereTwice) {
  for (const auto& prompts : testing::prompt_sets(200)) {
    const auto context = context_of(prompts);
    for (const bool collapse : {false, true}) {
      const auto text = distinct_text_rows(context, collapse);
      std::int64_t end = 0;
      for (std::int64_t b = 0; b < context.size(0); ++b) {
        ASSERT_TRUE(at::equal(written_out(text, b), context[b]));
        std::int64_t same = 0;
        while (!at::equal(context[same], context[b])) ++same;
        const auto rows = seen_by(text, b);
        if (same < b) {
          EXPECT_EQ(rows, seen_by(text, same));
        } else {
          EXPECT_EQ(rows.begin, end) << "rows of different prompts are disjoint";
          end = rows.end;
        }
      }
      const auto total = text.rows_1TC.size(1);
      EXPECT_GE(total, end);
      EXPECT_LE(total, context.size(0) * kTinyText);
      EXPECT_LT(total, end + (collapse ? kTextRowStep : 1));
    }
  }
}

TEST(TextRowsTest, PadsBecomeOneRowThatStandsForThemAll) {
  const auto text = distinct_text_rows(context_of({{0, 5}, {1, 70}, {2, 69}, {3, 0}}), true);
  EXPECT_EQ(seen_by(text, 0), (SeenRows{0, 6, 65}));
  EXPECT_EQ(seen_by(text, 1), (SeenRows{6, 76, 1}));
  EXPECT_EQ(seen_by(text, 2), (SeenRows{76, 146, 1}));
  EXPECT_EQ(seen_by(text, 3), (SeenRows{146, 147, 70}));
  EXPECT_EQ(text.rows_1TC.size(1), 192) << "147 rounded up to a multiple of 64";
  EXPECT_EQ(text.rows_1TC.narrow(1, 147, 45).abs().sum().item<float>(), 0);
}

TEST(TextRowsTest, AZeroOfEitherSignIsPadding) {
  auto context = context_of({{0, 5}});
  context.narrow(1, 5, kTinyText - 5).fill_(-0.0);
  EXPECT_EQ(seen_by(distinct_text_rows(context, true), 0), (SeenRows{0, 6, 65}));
}

TEST(TextRowsTest, RowsOfZerosBetweenWordsStay) {
  auto context = context_of({{0, 20}});
  context.narrow(1, 7, 4).zero_();
  EXPECT_EQ(seen_by(distinct_text_rows(context, true), 0), (SeenRows{0, 21, 50}));
}

TEST(TextRowsTest, DifferentPromptsAreNotCopied) {
  const auto context = context_of({{0, 5}, {1, 70}});
  EXPECT_EQ(distinct_text_rows(context, false).rows_1TC.const_data_ptr(), context.const_data_ptr());
}

TEST(TextRowsTest, FeaturesThatAreNotOnTheCpuAreTakenAsTheyAre) {
  const auto text = distinct_text_rows(at::empty({2, 6, 5}, at::TensorOptions(at::kMeta)), true);
  EXPECT_EQ(text.rows_1TC.sizes(), at::IntArrayRef({1, 12, 5}));
  EXPECT_EQ(seen_by(text, 1), (SeenRows{6, 12, 1}));
}

TEST(TextRowsTest, FeaturesWithoutRowsAreRefused) {
  EXPECT_THROW(distinct_text_rows(at::ones({2, 0, 5}), true), c10::Error);
  EXPECT_THROW(distinct_text_rows(at::ones({2, 5}), true), c10::Error);
}

}  // namespace
}  // namespace troupe::model

// Byte tokens, SentencePiece tokens, padding and truncation.
#include "model/text/tokenizer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/golden_folder.h"

namespace troupe {
namespace {

using testing::golden_cases;
using testing::GoldenCase;

std::unique_ptr<Tokenizer> byte_tokenizer(std::int64_t max_length) {
  TextEncoderConfig config;
  config.max_length = max_length;
  return std::move(make_tokenizer(config)).value();
}

TEST(CleanAsciiPromptTest, WhiteSpaceCollapsesAndEndsAreStripped) {
  EXPECT_EQ(clean_ascii_prompt("  Pick   up\tthe\nred \r\n block  "), "Pick up the red block");
  EXPECT_EQ(clean_ascii_prompt(" \t "), "");
  EXPECT_EQ(clean_ascii_prompt("caf\xc3\xa9  x"), "caf\xc3\xa9 x");
}

TEST(ByteTokenizerTest, BytesAreShiftedByThreeThenEndThenPadding) {
  const auto tokens = byte_tokenizer(6)->tokenize(" Hi ");
  EXPECT_EQ(tokens.ids, (std::vector<std::int64_t>{'H' + 3, 'i' + 3, 1, 0, 0, 0}));
  EXPECT_EQ(tokens.mask, (std::vector<std::int64_t>{1, 1, 1, 0, 0, 0}));
}

TEST(ByteTokenizerTest, TruncationKeepsTheEndToken) {
  const auto tokens = byte_tokenizer(4)->tokenize("abcdef");
  EXPECT_EQ(tokens.ids, (std::vector<std::int64_t>{'a' + 3, 'b' + 3, 'c' + 3, 1}));
  EXPECT_EQ(tokens.mask, (std::vector<std::int64_t>{1, 1, 1, 1}));
}

TEST(ByteTokenizerTest, AnEmptyPromptIsTheEndToken) {
  const auto tokens = byte_tokenizer(3)->tokenize("");
  EXPECT_EQ(tokens.ids, (std::vector<std::int64_t>{1, 0, 0}));
  EXPECT_EQ(tokens.mask, (std::vector<std::int64_t>{1, 0, 0}));
}

TEST(ByteTokenizerTest, HighBytesStayInsideTheVocabulary) {
  const auto tokenizer = byte_tokenizer(8);
  EXPECT_EQ(tokenizer->tokenize("\xff").ids.front(), 258);
  EXPECT_EQ(tokenizer->vocab(), 259);
}

TEST(MakeTokenizerTest, AMissingModelFileIsNamed) {
  TextEncoderConfig config;
  config.tokenizer = "no/such/spiece.model";
  const auto tokenizer = make_tokenizer(config);
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), Errc::not_found);
  EXPECT_NE(tokenizer.error().message().find("no/such/spiece.model"), std::string::npos);
}

TEST(MakeTokenizerTest, AVocabularyLargerThanTheEmbeddingIsRefused) {
  TextEncoderConfig config;
  config.vocab = 200;
  const auto tokenizer = make_tokenizer(config);
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), Errc::invalid_argument);
}

class GoldenSentencePieceTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  std::unique_ptr<Tokenizer> load(UnknownBytes unknown) const {
    TextEncoderConfig config;
    config.tokenizer = (GetParam().folder / GetParam().json.at("model").get<std::string>()).string();
    config.max_length = GetParam().json.at("max_length").get<std::int64_t>();
    return std::move(make_tokenizer(config, unknown)).value();
  }
  /// The ids of every row, from its cleaned text: cleaning beyond ASCII is another kind of case.
  void expect_rows(const Tokenizer& tokenizer, const char* column) const {
    const auto& rows = GetParam().json.at("rows");
    ASSERT_FALSE(rows.empty());
    for (const auto& row : rows) {
      if (!row.contains(column)) continue;
      const auto want = row.at(column).get<std::vector<std::int64_t>>();
      const auto got = tokenizer.tokenize(row.at("cleaned").get<std::string>());
      const auto length = std::accumulate(got.mask.begin(), got.mask.end(), std::int64_t{0});
      EXPECT_EQ(std::vector<std::int64_t>(got.ids.begin(), got.ids.begin() + length), want) << row.at("text");
    }
  }
};

TEST_P(GoldenSentencePieceTest, IdsEqualTheReferences) { expect_rows(*load(UnknownBytes::to_unknown), "ids"); }

TEST_P(GoldenSentencePieceTest, BytePiecesAreKeptWhenAsked) {
  if (!GetParam().json.value("byte_fallback", false)) GTEST_SKIP() << "the model has no byte pieces";
  expect_rows(*load(UnknownBytes::keep), "ids_byte_fallback_true");
}

TEST_P(GoldenSentencePieceTest, ABatchIsPaddedAndMaskedLikeTheReferences) {
  if (!GetParam().json.contains("batch")) GTEST_SKIP() << "the case has no batch";
  const auto& batch = GetParam().json.at("batch");
  const auto tokenizer = load(UnknownBytes::to_unknown);
  for (std::size_t i = 0; i < batch.at("texts").size(); ++i) {
    const auto got = tokenizer->tokenize(batch.at("texts")[i].get<std::string>());
    EXPECT_EQ(got.ids, batch.at("ids")[i].get<std::vector<std::int64_t>>()) << i;
    EXPECT_EQ(got.mask, batch.at("mask")[i].get<std::vector<std::int64_t>>()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSentencePieceTest, ::testing::ValuesIn(golden_cases("encoders", "sentencepiece")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSentencePieceTest);

}  // namespace
}  // namespace troupe

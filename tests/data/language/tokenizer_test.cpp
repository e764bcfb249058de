// Byte tokens, SentencePiece tokens, padding and truncation.
#include "data/language/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/data/language/sentencepiece_bytes.h"
#include "tests/support/golden_folder.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

std::unique_ptr<Tokenizer> byte_tokenizer(std::int64_t max_length) {
  TextEncoderConfig config;
  config.max_length = max_length;
  return std::move(make_tokenizer(config)).value();
}

TEST(ByteTokenizerTest, BytesAreShiftedByThreeThenEndThenPadding) {
  const auto tokens = byte_tokenizer(6)->tokenize("Hi");
  EXPECT_EQ(tokens.ids, (std::vector<std::int64_t>{'H' + 3, 'i' + 3, 1, 0, 0, 0}));
  EXPECT_EQ(tokens.mask, (std::vector<std::int64_t>{1, 1, 1, 0, 0, 0}));
}

TEST(ByteTokenizerTest, TokenizingDoesNotCleanAndCleaningHappensOnce) {
  const auto tokenizer = byte_tokenizer(4);
  EXPECT_EQ(tokenizer->tokenize(" a").ids, (std::vector<std::int64_t>{' ' + 3, 'a' + 3, 1, 0}));
  const auto cleaned = clean_and_tokenize(*tokenizer, " \uFF41\t&amp; ");
  EXPECT_EQ(cleaned->ids, (std::vector<std::int64_t>{'a' + 3, ' ' + 3, '&' + 3, 1}));
  EXPECT_FALSE(clean_and_tokenize(*tokenizer, "\xff"));
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
  const auto tokenizer = make_tokenizer({.tokenizer = "no/such/spiece.model"});
  EXPECT_EQ(tokenizer.error().code(), Errc::not_found);
  EXPECT_NE(tokenizer.error().message().find("no/such/spiece.model"), std::string::npos);
}

TEST(MakeTokenizerTest, AVocabularyLargerThanTheEmbeddingIsRefused) {
  TextEncoderConfig config;
  config.vocab = 200;
  EXPECT_EQ(make_tokenizer(config).error().code(), Errc::invalid_argument);
}

void write(const ScratchFolder& folder, const char* name, const std::string& text) {
  std::ofstream(folder / name, std::ios::binary) << text;
}

TEST(MakeTokenizerTest, AFolderWithoutASentencePieceModelNamesTheFileItWants) {
  const ScratchFolder folder;
  EXPECT_NE(make_tokenizer({.tokenizer = folder.path()}).error().message().find("spiece.model"), std::string::npos);
}

TEST(SentencePieceTokenizerTest, AClusterOfAtMostFiveBytesIsReplacedAsAWhole) {
  const ScratchFolder folder;
  write(folder, "spiece.model",
        testing::sentencepiece_model_bytes({"\u2581", "\u1E61", "\u0323", "x", "1", "\u20DD"},
                                           testing::character_map_bytes({{"\u1E9B", "\u1E61"}, {"\u2460", "1"}})));
  const auto tokenizer = make_tokenizer({.max_length = 12, .tokenizer = folder.path()});
  // 2 is unknown, 3 the blank in front of a word
  EXPECT_EQ((*tokenizer)->tokenize("\u1E9B\u0323").ids,
            (std::vector<std::int64_t>{3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ((*tokenizer)->tokenize("x\u1E9B\u0323 \u1E61\u0323 \u2460\u20DD").ids,
            (std::vector<std::int64_t>{3, 6, 4, 3, 4, 5, 3, 7, 8, 1, 0, 0}));
  EXPECT_EQ((*tokenizer)->tokenize("\u2460z").ids.at(2), 2);
}

class GoldenSentencePieceTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  std::filesystem::path model() const { return GetParam().folder / GetParam().json.at("model").get<std::string>(); }
  TextEncoderConfig config(const std::filesystem::path& tokenizer) const {
    return {.max_length = GetParam().json.at("max_length").get<std::int64_t>(), .tokenizer = tokenizer.string()};
  }
  std::unique_ptr<Tokenizer> load(UnknownBytes unknown) const {
    return std::move(make_tokenizer(config(model()), unknown)).value();
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

TEST_P(GoldenSentencePieceTest, AClusterGivesTheBytesOfItsReplacementAlone) {
  if (!GetParam().json.value("byte_fallback", false)) GTEST_SKIP() << "the model has no byte pieces";
  const auto tokenizer = load(UnknownBytes::keep);
  EXPECT_EQ(tokenizer->tokenize("x\u1E9B\u0323").ids, tokenizer->tokenize("x\u1E61").ids);
  EXPECT_NE(tokenizer->tokenize("x\u1E61\u0323").ids, tokenizer->tokenize("x\u1E61").ids);
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

TEST_P(GoldenSentencePieceTest, PromptsAreCleanedOnceOnTheirWayToIds) {
  const auto tokenizer = load(UnknownBytes::to_unknown);
  for (const auto& row : GetParam().json.at("rows")) {
    if (!row.contains("text") || !row.contains("ids")) continue;
    const auto got = clean_and_tokenize(*tokenizer, row.at("text").get<std::string>());
    if (!got) continue;  // mis-decoded text is refused, which text_clean covers
    const auto length = std::accumulate(got->mask.begin(), got->mask.end(), std::int64_t{0});
    EXPECT_EQ(std::vector<std::int64_t>(got->ids.begin(), got->ids.begin() + length),
              row.at("ids").get<std::vector<std::int64_t>>())
        << row.at("text");
  }
}

TEST_P(GoldenSentencePieceTest, AFolderAndItsTokenizerJsonDecideAboutUnknownBytes) {
  const ScratchFolder folder;
  std::filesystem::copy_file(model(), folder / "spiece.model");
  const auto made = [&](const std::filesystem::path& path) { return std::move(make_tokenizer(config(path))).value(); };
  expect_rows(*made(folder.path()), "ids");  // no tokenizer.json: unknown
  write(folder, "tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [], "byte_fallback": false}})");
  expect_rows(*made(folder.path()), "ids");
  write(folder, "tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [], "byte_fallback": true}})");
  if (GetParam().json.value("byte_fallback", false)) {
    expect_rows(*made(folder.path()), "ids_byte_fallback_true");
    expect_rows(*made(folder / "spiece.model"), "ids_byte_fallback_true");
  } else {
    expect_rows(*made(folder.path()), "ids");
  }
}

TEST_P(GoldenSentencePieceTest, AddedTokensOfTheTokenizerJsonBecomeTheirIds) {
  const ScratchFolder folder;
  std::filesystem::copy_file(model(), folder / "spiece.model");
  const auto first = std::move(make_tokenizer(config(folder.path()))).value()->vocab();
  write(folder, "tokenizer.json",
        R"({"added_tokens": [{"id": )" + std::to_string(first) + R"(, "content": "<x>"},
      {"id": )" +
            std::to_string(first + 1) + R"(, "content": "<x>y", "lstrip": true, "rstrip": true}]})");
  const auto tokenizer = std::move(make_tokenizer(config(folder.path()))).value();
  EXPECT_EQ(tokenizer->vocab(), first + 2);
  EXPECT_EQ(tokenizer->tokenize("<x>").ids.front(), first);
  EXPECT_EQ(tokenizer->tokenize("<x>y").ids.front(), first + 1) << "the longest literal wins";
  const auto alone = tokenizer->tokenize("the").ids, between = tokenizer->tokenize("the <x>y the").ids;
  const auto end = tokenizer->tokenize("").ids.front();
  const std::vector<std::int64_t> pieces(alone.begin(), std::find(alone.begin(), alone.end(), end));
  std::vector<std::int64_t> want = pieces;
  want.push_back(first + 1);
  want.insert(want.end(), pieces.begin(), pieces.end());
  EXPECT_EQ(std::vector<std::int64_t>(between.begin(), between.begin() + static_cast<std::ptrdiff_t>(want.size())),
            want);
  // a vocabulary that the embedding lacks
  auto small = config(folder.path());
  small.vocab = first + 1;
  EXPECT_FALSE(make_tokenizer(small));
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSentencePieceTest, ::testing::ValuesIn(golden_cases("encoders", "sentencepiece")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSentencePieceTest);

}  // namespace
}  // namespace troupe::data

// The fields of a tokenizer.json that decide beside a SentencePiece model, and files that are none.
#include "data/language/tokenizer_json.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

class TokenizerJsonTest : public ::testing::Test {
 protected:
  Result<TokenizerJson> read(const std::string& text) const {
    const ScratchFolder folder;
    const std::string path = folder / "tokenizer.json";
    std::ofstream(path, std::ios::binary) << text;
    return read_tokenizer_json(path);
  }
};

TEST_F(TokenizerJsonTest, ByteFallbackAndAddedTokensAreFound) {
  const auto got = read(R"({"version": "1.0", "truncation": null, "byte_fallback": false, "added_tokens": [
    {"id": 1, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": true, "normalized": false},
    {"id": 300, "content": "<extra_id_0>", "lstrip": true, "special": true}],
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA="},
    "post_processor": {"model": {"byte_fallback": false}},
    "model": {"type": "Unigram", "unk_id": 3, "vocab": [["<pad>", 0.0], ["\u2581a", -2.5]], "byte_fallback": true}})");
  EXPECT_TRUE(got->byte_fallback);
  ASSERT_EQ(got->added.size(), 2U);
  EXPECT_EQ(got->added[0].content, "</s>");
  EXPECT_EQ(got->added[0].id, 1);
  EXPECT_TRUE(got->added[0].strip_right);
  EXPECT_FALSE(got->added[0].strip_left);
  EXPECT_EQ(got->added[1].content, "<extra_id_0>");
  EXPECT_EQ(got->added[1].id, 300);
  EXPECT_TRUE(got->added[1].strip_left);
}

TEST_F(TokenizerJsonTest, AFileWithoutTheFieldsFallsBackToNoBytesAndNoTokens) {
  const auto got = read(R"({"model": {"type": "Unigram"}})");
  EXPECT_FALSE(got->byte_fallback);
  EXPECT_TRUE(got->added.empty());
}

TEST_F(TokenizerJsonTest, OtherModelsAndBrokenFilesAreRefusedByName) {
  EXPECT_NE(read(R"({"model": {"type": "BPE"}})").error().message().find("BPE"), std::string::npos);
  EXPECT_FALSE(read(R"({"added_tokens": [{"content": "x"}]})"));
  EXPECT_FALSE(read(R"({"added_tokens": [{"id": 5}]})"));
  for (const std::string& text : {std::string(), std::string("["), std::string(R"({"model": {)"),
                                  std::string(100'000, '['), std::string("{\"model\": \x01}"), std::string("[]]")}) {
    const auto got = read(text);
    ASSERT_FALSE(got) << text.substr(0, 20);
    EXPECT_EQ(got.error().code(), Errc::invalid_argument);
    EXPECT_NE(got.error().message().find("no JSON from byte"), std::string::npos);
  }
  EXPECT_EQ(read_tokenizer_json("no/such/tokenizer.json").error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::data

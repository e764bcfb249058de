// The cleaning of prompts against the reference's own results (golden/encoders: text_clean, text_char_map).
#include <gtest/gtest.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <map>

#include "data/language/icu_text.h"
#include "data/language/unicode.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {
namespace {

class GoldenTextTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTextTest, EveryRowIsCleanedAsTheReferenceCleansItOrRefusedAsMisDecoded) {
  const auto& rows = GetParam().json.at("rows");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    const auto input = row.at("input").get<std::string>();
    const auto got = clean_prompt(input);
    if (!got && row.value("category", "") == "mojibake") {
      EXPECT_EQ(got.error().code(), Errc::invalid_argument);
      EXPECT_NE(got.error().message().find(input), std::string::npos) << got.error().message();
      continue;
    }
    ASSERT_TRUE(got) << row << ": " << got.error().message();
    EXPECT_EQ(*got, row.at("cleaned").get<std::string>()) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTextTest, ::testing::ValuesIn(golden_cases("encoders", "text_clean")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTextTest);

std::string nfc(const std::string& text) {
  UErrorCode code = U_ZERO_ERROR;
  const auto* normalizer = icu::Normalizer2::getNFCInstance(code);
  return encode_utf8(normalizer->normalize(icu::UnicodeString::fromUTF8(text), code));
}

/// What the case's tables make of single characters.
class CharMap {
 public:
  explicit CharMap(const nlohmann::json& tables) {
    for (const auto& range : tables.value("drop_ranges", nlohmann::json::array())) fill(range, "");
    for (const auto& range : tables.value("space_ranges", nlohmann::json::array())) fill(range, " ");
    const auto map = tables.value("map", nlohmann::json::object());
    for (const auto& [code, text] : map.items()) {
      map_[std::stoi(code)] = text.get<std::string>();
    }
  }
  std::size_t size() const { return map_.size(); }
  /// "a" + c + "b" as the reference cleans it.
  std::string expected(UChar32 c) const {
    const auto it = map_.find(c);
    return nfc("a" + (it == map_.end() ? encode_utf8(icu::UnicodeString(c)) : it->second) + "b");
  }
  const std::map<UChar32, std::string>& characters() const { return map_; }

 private:
  void fill(const nlohmann::json& range, const char* text) {
    for (auto c = range.at(0).get<UChar32>(); c <= range.at(1).get<UChar32>(); ++c) map_[c] = text;
  }
  std::map<UChar32, std::string> map_;
};

class GoldenTextCharMapTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTextCharMapTest, EveryListedCharacterIsDroppedSpacedOrMapped) {
  const CharMap map(GetParam().json);
  ASSERT_GT(map.size(), 0U);
  for (const auto& [c, text] : map.characters()) {
    const auto got = clean_prompt("a" + encode_utf8(icu::UnicodeString(c)) + "b");
    ASSERT_TRUE(got) << c << ": " << got.error().message();
    EXPECT_EQ(*got, map.expected(c)) << c;
  }
}

TEST_P(GoldenTextCharMapTest, NoOtherCharacterChangesButByNfc) {
  const CharMap map(GetParam().json);
  // both planes that hold nearly all assigned characters, then a sample of the rest
  for (UChar32 c = 0x80; c <= 0x10FFFF; c += c < 0x20000 ? 1 : 97) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const auto got = clean_prompt("a" + encode_utf8(icu::UnicodeString(c)) + "b");
    ASSERT_TRUE(got) << c << ": " << got.error().message();
    ASSERT_EQ(*got, map.expected(c)) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTextCharMapTest, ::testing::ValuesIn(golden_cases("encoders", "text_char_map")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTextCharMapTest);

}  // namespace
}  // namespace troupe::data

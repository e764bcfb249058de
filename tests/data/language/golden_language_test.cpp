#include <gtest/gtest.h>

#include "data/language/language.h"
#include "data/language/unicode.h"
#include "tests/data/data_test_support.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

class GoldenLanguageTest : public ::testing::Test {
 protected:
  const std::vector<Json> files_ = golden_files("language");
};

TEST_F(GoldenLanguageTest, InstructionRulesMatchBothReferences) {
  for (const Json& file : files_) {
    EXPECT_TRUE(has_any_part(file, {"instruction_rules", "formalize", "tokeniser_cleaning"})) << "nothing to compare";
    for (const Json& c : part_of(file, "instruction_rules")) {
      SCOPED_TRACE(c.dump());
      const auto got = read_instruction(c["raw"]);
      const std::string want = c["rlinf"];
      ASSERT_EQ(want, c["gear"].get<std::string>());
      if (want.rfind("ERROR", 0) == 0) {
        EXPECT_EQ(got.error().code(), Errc::invalid_argument);
      } else {
        EXPECT_EQ(got->text, want);
      }
    }
  }
}

TEST_F(GoldenLanguageTest, FormalizeKeepsWordCharactersAndWhiteSpace) {
  for (const Json& file : files_) {
    for (const Json& c : part_of(file, "formalize"))
      EXPECT_EQ(*formalize_language(c["raw"].get<std::string>()), c["formalize_language"]);
  }
}

TEST_F(GoldenLanguageTest, CleaningMatchesOrRefusesMisDecodedText) {
  for (const Json& file : files_) {
    for (const Json& c : part_of(file, "tokeniser_cleaning")) {
      SCOPED_TRACE(c.dump());
      const std::string raw = c["raw"];
      const auto got = clean_prompt(raw);
      if (!got && raw.find("\xC3\xAF\xC2") != std::string::npos) {  // UTF-8 that was decoded as Latin-1
        EXPECT_EQ(got.error().code(), Errc::invalid_argument);
      } else {
        EXPECT_EQ(*got, c["tokeniser_cleaning"].get<std::string>());
      }
    }
  }
}

}  // namespace
}  // namespace troupe::data

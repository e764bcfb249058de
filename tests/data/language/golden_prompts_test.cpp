// Templates, instructions and whole prompts against both references (golden/encoders: prompts).
#include <gtest/gtest.h>

#include "data/language/language.h"
#include "data/language/prompt_templates.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {
namespace {

using nlohmann::json;

bool has_text(const json& row, const char* name) { return row.contains(name) && row.at(name).is_string(); }

class GoldenPromptsTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  json list(const char* name) const { return GetParam().json.value(name, json::array()); }

  /// The template of an embodiment: its name, which ours bear too. Whatever we lack has no template there either.
  static Result<std::string> prompt(const json& row, const std::string& instruction) {
    return make_prompt(row.at("embodiment").get<std::string>(), instruction, row.value("num_views", std::int64_t{2}));
  }
};

TEST_P(GoldenPromptsTest, TheCaseHoldsSomethingToTest) {
  EXPECT_GT(list("instructions").size() + list("prompts").size(), 0U);
}

TEST_P(GoldenPromptsTest, EveryTemplateIsShippedByteForByte) {
  const std::string go = "pick up the cup";
  for (const char* code_base : {"templates_dreamzero", "templates_rlinf"}) {
    const json templates = GetParam().json.value(code_base, json::object());
    for (const auto& [embodiment, entry] : templates.items()) {
      std::string want;
      const auto pieces = entry.at("pieces").get<std::vector<std::string>>();
      for (std::size_t i = 0; i < pieces.size(); ++i) want += (i > 0 ? go : "") + pieces[i];
      EXPECT_EQ(static_cast<int>(pieces.size()) - 1, entry.value("instruction_count", 0)) << embodiment;
      const auto got = make_prompt(embodiment, go, 3);
      ASSERT_TRUE(got) << code_base << " " << embodiment << ": " << got.error().message();
      EXPECT_EQ(*got, want) << code_base << " " << embodiment;
    }
  }
  if (has_text(GetParam().json, "negative_prompt")) {
    EXPECT_EQ(negative_prompt(), GetParam().json.at("negative_prompt").get<std::string>());
  }
}

TEST_P(GoldenPromptsTest, EveryInstructionIsParsedOrRefusedAsInBothCodeBases) {
  for (const auto& row : list("instructions")) {
    const auto got = read_instruction(row.at("raw").get<std::string>());
    for (const auto& [value, error] : {std::pair("instruction", "error"), {"rlinf_instruction", "rlinf_error"}}) {
      if (has_text(row, error)) {
        ASSERT_FALSE(got) << row;
        EXPECT_EQ(got.error().code(), Errc::invalid_argument) << row;
      } else if (has_text(row, value)) {
        ASSERT_TRUE(got) << row << ": " << got.error().message();
        EXPECT_EQ(got->text, row.at(value).get<std::string>()) << row;
      }
    }
  }
}

TEST_P(GoldenPromptsTest, EveryPromptIsWrappedAndCleanedAsTheReferenceDoes) {
  for (const auto& row : list("prompts")) {
    const auto raw = row.at("raw").get<std::string>();
    const auto instruction = read_instruction(raw);
    const auto whole = instruction ? prompt(row, instruction->text) : Result<std::string>(instruction.error());
    if (has_text(row, "error")) {
      ASSERT_FALSE(whole) << row;
      EXPECT_EQ(whole.error().code(), Errc::invalid_argument) << row;
      continue;
    }
    ASSERT_TRUE(whole) << row << ": " << whole.error().message();
    if (has_text(row, "prompt")) {
      EXPECT_EQ(*whole, row.at("prompt").get<std::string>()) << row;
    }
    if (!has_text(row, "cleaned")) continue;
    const auto cleaned =
        prompt_from_task(row.at("embodiment").get<std::string>(), raw, row.value("num_views", std::int64_t{2}));
    ASSERT_TRUE(cleaned) << row << ": " << cleaned.error().message();
    EXPECT_EQ(*cleaned, row.at("cleaned").get<std::string>()) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenPromptsTest, ::testing::ValuesIn(golden_cases("encoders", "prompts")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenPromptsTest);

}  // namespace
}  // namespace troupe::data

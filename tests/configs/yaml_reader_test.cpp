#include "configs/yaml_reader.h"

#include <gtest/gtest.h>

namespace troupe::configs {
namespace {

/// The errors of reading a text, one per line.
std::string errors_of(const std::string& text) {
  Diagnostics errors("t.yaml");
  read_yaml("t.yaml", text, errors);
  std::string all;
  for (const std::string& error : errors.finish()) all += error + "\n";
  return all;
}

bool reports(const std::string& text, const std::string& part) {
  const std::string all = errors_of(text);
  if (all.find(part) != std::string::npos) return true;
  ADD_FAILURE() << "got: " << all;
  return false;
}

TEST(YamlReaderTest, KeepsOrderQuotesAndPositions) {
  Diagnostics errors("t.yaml");
  const auto root = read_yaml("t.yaml", "b: 010\na: {c: \"x\", d: [1, null]}\n", errors);
  ASSERT_TRUE(root && errors.empty());
  ASSERT_EQ(root->entries.size(), 2u);
  EXPECT_EQ(root->entries[0].key, "b");
  EXPECT_EQ(root->entries[0].value.text, "010");
  EXPECT_FALSE(root->entries[0].value.quoted);
  const ConfigNode* c = find_node(*root, parse_path("a.c"));
  ASSERT_NE(c, nullptr);
  EXPECT_TRUE(c->quoted);
  EXPECT_EQ(c->origin.line, 2);
  EXPECT_EQ(c->origin.column, 8);
  EXPECT_TRUE(find_node(*root, parse_path("a.d[1]"))->is_null());
  EXPECT_EQ(find_node(*root, parse_path("a.d[2]")), nullptr);
}

TEST(YamlReaderTest, DuplicateKeysNameTheFirst) {
  EXPECT_EQ(errors_of("optimizer:\n  lr: 1\n  eps: 1\n  lr: 2\n"),
            "t.yaml:4:3: error: duplicate key 'lr' in map 'optimizer' (first at 2:3)\n"
            "    4 |   lr: 2\n"
            "      |   ^~\n");
  EXPECT_EQ(errors_of("a: 1\na: 2\n"),
            "t.yaml:2:1: error: duplicate key 'a' in map '(top level)' (first at 1:1)\n    2 | a: 2\n      | ^\n");
  EXPECT_TRUE(reports("a: [{b: 1}, {c: 1, c: 2}]\n", "duplicate key 'c' in map 'a[1]' (first at 1:14)"));
}

TEST(YamlReaderTest, RefusesMergeKeysAnchorsAliasesAndTags) {
  EXPECT_EQ(errors_of("a: 1\n<<: {b: 2}\n"),
            "t.yaml:2:1: error: YAML merge key '<<' is not supported\n"
            "    2 | <<: {b: 2}\n"
            "      | ^~ use `extends:` at the top of the file\n");
  EXPECT_TRUE(reports("a: &x 1\n", "t.yaml:1:4: error: YAML anchors are not supported"));
  EXPECT_TRUE(reports("a: *x\n", "error: "));
  EXPECT_TRUE(reports("a: !!int 3\n", "t.yaml:1:4: error: YAML tag 'tag:yaml.org,2002:int' is not supported"));
  EXPECT_TRUE(reports("a: !env X\n", "YAML tag '!env' is not supported"));
}

TEST(YamlReaderTest, SyntaxErrorsHaveAPosition) {
  EXPECT_TRUE(reports("a: 1\nb: x: 3\n",
                      "t.yaml:2:5: error: YAML syntax: illegal map value\n    2 | b: x: 3\n      |     ^\n"));
  EXPECT_TRUE(reports("a: [1,\n", "error: YAML syntax"));
  EXPECT_TRUE(reports("a:\n\tb: 1\n", "error: "));
}

TEST(YamlReaderTest, TheRootIsOneMap) {
  EXPECT_TRUE(reports("- a\n", "a configuration file is a map of sections"));
  EXPECT_TRUE(reports("a: 1\n---\nb: 1\n", "a second YAML document"));
  EXPECT_TRUE(reports("? [x]\n: y\n", "a key must be a scalar"));
  EXPECT_EQ(errors_of(""), "");
  EXPECT_EQ(errors_of("# only a comment\n"), "");
}

TEST(YamlReaderTest, LimitsSizeDepthAndBytes) {
  EXPECT_TRUE(reports("a: " + std::string(kMaxConfigBytes, 'x'), "a configuration file may have 1048576"));
  EXPECT_TRUE(reports("a: " + std::string(40, '[') + std::string(40, ']'), "nested deeper than 16 levels"));
  EXPECT_EQ(errors_of("a: " + std::string(15, '[') + std::string(15, ']')), "");
  EXPECT_TRUE(reports("a: \xFF\xFE\n", "t.yaml:1:4: error: byte 0xFF is not UTF-8 text"));
  EXPECT_TRUE(reports(std::string("a: 1\nb: \0", 9), "t.yaml:2:4: error: byte 0x00 is not UTF-8 text"));
}

TEST(YamlReaderTest, ColumnsCountCharactersAndTabsLineUp) {
  EXPECT_EQ(errors_of("g: {\u00fc: 1, \u00fc: 2}\n"),
            "t.yaml:1:11: error: duplicate key '\u00fc' in map 'g' (first at 1:5)\n"
            "    1 | g: {\u00fc: 1, \u00fc: 2}\n"
            "      |           ^\n");
  EXPECT_TRUE(reports("g: {a: 1,\ta: 2}\n", "      |          \t^\n"));
}

}  // namespace
}  // namespace troupe::configs

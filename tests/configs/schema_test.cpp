#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "configs/describe.h"
#include "configs/schema_export.h"
#include "tests/support/folder_files.h"

namespace troupe::configs {
namespace {

using Json = nlohmann::json;

/// The schema of the struct behind a property: past anyOf, array items and map values.
const Json& struct_of(const Json& schema) {
  if (schema.contains("properties")) return schema;
  if (schema.contains("items")) return struct_of(schema["items"]);
  if (schema.contains("anyOf")) return struct_of(schema["anyOf"][0]);
  return struct_of(schema["additionalProperties"]);
}

void expect_keys(const Json& schema, const StructSpec& spec, const std::string& prefix) {
  const Json& properties = struct_of(schema)["properties"];
  for (const FieldSpec& field : spec.fields) {
    ASSERT_TRUE(properties.contains(field.name)) << prefix << field.name;
    EXPECT_NE(properties[field.name]["description"].get<std::string>().find(field.doc), std::string::npos)
        << prefix << field.name;
    if (field.element) expect_keys(properties[field.name], *field.element, prefix + field.name + ".");
  }
}

TEST(SchemaTest, IsJsonThatNamesEveryKeyAndRefusesOthers) {
  const Json schema = Json::parse(config_schema_json());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_TRUE(schema["properties"].contains("extends"));
  expect_keys(schema, job_spec(), "");
}

TEST(SchemaTest, CarriesTypesBoundsChoicesAndDefaults) {
  const Json properties = Json::parse(config_schema_json())["properties"];
  const Json& steps = properties["training"]["properties"]["steps"];
  EXPECT_EQ(steps["anyOf"][0]["type"], "integer");
  EXPECT_EQ(steps["anyOf"][0]["minimum"], 1);
  EXPECT_EQ(steps["default"], 1000);
  const Json& data = properties["data"]["properties"];
  const Json& weight = data["sets"]["anyOf"][0]["items"]["anyOf"][0]["properties"]["weight"];
  EXPECT_EQ(weight["anyOf"][0]["exclusiveMinimum"], 0);
  EXPECT_FALSE(weight["anyOf"][0].contains("maximum"));
  EXPECT_EQ(data["bad_sample"]["anyOf"][0]["enum"], Json({"fail", "skip"}));
  EXPECT_EQ(properties["optimizer"]["properties"]["betas"]["default"], Json({0.95, 0.999}));
  EXPECT_EQ(data["embodiment"]["anyOf"][0]["properties"]["tag"]["default"], "gr1_unified");
  EXPECT_EQ(data["embodiment"]["anyOf"][1]["type"], "string") << "a name or a file";
  EXPECT_EQ(data["sets"]["anyOf"][1]["type"], "string") << "one path";
}

TEST(SchemaTest, EveryKeyHasARowInTheReferencePage) {
  const std::string page = config_markdown();
  for (const SpecEntry& entry : job_spec_entries()) {
    const std::string mark =
        entry.field->kind == FieldKind::group ? "# " + entry.path + "\n" : "| `" + entry.path + "` |";
    EXPECT_NE(page.find(mark), std::string::npos) << entry.path;
    EXPECT_FALSE(entry.field->doc.empty()) << entry.path;
  }
}

TEST(SchemaTest, TheReferencePageIsUpToDate) {
  EXPECT_TRUE(text_of(TROUPE_SOURCE_DIR "/docs/config.md") == config_markdown())
      << "docs/config.md is out of date; run: bin/troupe config --markdown > docs/config.md";
}

}  // namespace
}  // namespace troupe::configs

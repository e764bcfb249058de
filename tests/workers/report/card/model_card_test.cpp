#include "workers/report/card/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "tests/support/hub_home.h"
#include "workers/report/card/card_facts.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

YAML::Node front_matter_of(const std::string& card) {
  EXPECT_TRUE(card.starts_with("---\n"));
  return YAML::Load(card.substr(4, card.find("\n---\n", 4) - 4));
}

/// Names as users write them.
ModelCard awkward_card() {
  ModelCard card{.name = "pick: \"it\"\n# up | down", .summary = "A policy."};
  card.tags = {"robotics", "it's: odd"};
  card.base = CardWeights{.name = "Wan-AI/Wan2.2-TI2V-5B", .is_repo_id = true, .license = CardLicense{{"apache-2.0"}}};
  card.frozen = {{"VAE", {.name = "/weights/vae"}}};
  card.metrics = {{"held-out loss", 0.25}, {"evaluation: return", 500}};
  card.datasets = {{.name = "me/pick",
                    .is_repo_id = true,
                    .episodes = 5,
                    .frames = 100,
                    .frames_per_second = 15,
                    .license = CardLicense{{"mit"}}},
                   {.name = "my | own", .held_out_episodes = 1}};
  card.config = "a: ```\n";
  return card;
}

TEST(ModelCardTest, FrontMatterIsYamlWhateverNamesHold) {
  const YAML::Node front = front_matter_of(model_card_text(awkward_card()));
  EXPECT_EQ(front["license"].as<std::string>(), "apache-2.0");
  EXPECT_EQ(front["library_name"].as<std::string>(), "troupe");
  EXPECT_EQ(front["pipeline_tag"].as<std::string>(), "robotics");
  EXPECT_EQ(front["tags"][1].as<std::string>(), "it's: odd");
  EXPECT_EQ(front["base_model"].as<std::string>(), "Wan-AI/Wan2.2-TI2V-5B");
  ASSERT_EQ(front["datasets"].size(), 1u) << "a folder of this machine is no repository";
  EXPECT_EQ(front["datasets"][0].as<std::string>(), "me/pick");
  const YAML::Node result = front["model-index"][0]["results"][0];
  EXPECT_EQ(front["model-index"][0]["name"].as<std::string>(), "pick: \"it\"\n# up | down");
  EXPECT_EQ(result["task"]["type"].as<std::string>(), "robotics");
  EXPECT_EQ(result["dataset"]["name"].as<std::string>(), "me/pick");
  EXPECT_EQ(result["metrics"][1]["type"].as<std::string>(), "evaluation: return");
  EXPECT_EQ(result["metrics"][1]["value"].as<double>(), 500);
}

TEST(ModelCardTest, TheTextHasDataMetricsAndLicences) {
  const std::string text = model_card_text(awkward_card());
  EXPECT_THAT(text, HasSubstr("# pick: \"it\" # up \\| down\n"));
  EXPECT_THAT(text, HasSubstr("| me/pick | 5 | 100 | 15 | 0 | mit |\n"));
  EXPECT_THAT(text, HasSubstr("| my \\| own | not known | not known | not known | 1 | not stated |\n"));
  EXPECT_THAT(text, HasSubstr("| held-out loss | 0.25 |\n"));
  EXPECT_THAT(text, HasSubstr("began from: Wan-AI/Wan2.2-TI2V-5B, licence apache-2.0\n"));
  EXPECT_THAT(text, HasSubstr("- VAE, which was not trained: /weights/vae, licence not stated\n"));
  EXPECT_THAT(text, HasSubstr("````yaml\na: ```\n````\n")) << "a fence that the text does not end";
}

TEST(ModelCardTest, NothingIsInvented) {
  const std::string text = model_card_text({.name = "a", .summary = "A policy."});
  const YAML::Node front = front_matter_of(text);
  for (const char* key : {"license", "base_model", "datasets", "model-index"}) EXPECT_FALSE(front[key]) << key;
  EXPECT_THAT(text, HasSubstr("The run recorded none."));
  EXPECT_THAT(text, HasSubstr("training began from random values"));
  EXPECT_THAT(text, Not(HasSubstr("## Data")));
}

TEST(ModelCardTest, ALicenceKeepsItsNameAndLink) {
  ModelCard card = awkward_card();
  card.base->license = CardLicense{.ids = {"other"}, .name = "wan: community", .link = "LICENSE"};
  std::string text = model_card_text(card);
  YAML::Node front = front_matter_of(text);
  EXPECT_EQ(front["license"].as<std::string>(), "other");
  EXPECT_EQ(front["license_name"].as<std::string>(), "wan: community");
  EXPECT_EQ(front["license_link"].as<std::string>(), "https://huggingface.co/Wan-AI/Wan2.2-TI2V-5B/blob/main/LICENSE");
  EXPECT_THAT(text, HasSubstr("licence other wan: community (LICENSE)\n"));
  card.base = CardWeights{.name = "wan", .license = CardLicense{{"mit", "apache-2.0"}, "", "LICENSE"}};
  text = model_card_text(card);
  front = front_matter_of(text);
  EXPECT_EQ(front["license"][1].as<std::string>(), "apache-2.0");
  EXPECT_FALSE(front["license_link"]) << "a file that is nowhere to be found";
  card.base->license->link = "https://example.org/licence";
  EXPECT_EQ(front_matter_of(model_card_text(card))["license_link"].as<std::string>(), "https://example.org/licence");
}

/// What a folder states, in one line.
std::string license_at(const std::string& path) {
  const auto license = stated_license(path);
  if (!license) return "none";
  std::string out;
  for (const std::string& id : license->ids) out += id + " ";
  return out + license->name + " " + license->link;
}

TEST(StatedLicenseTest, ReadsEveryFormOfTheFrontMatter) {
  const testing::HubHome folder;
  const auto stated = [&](const std::string& front) {
    folder.put("set/README" + std::string(".md"), "---\n" + front + "\n---\n# Text\n");
    return license_at(folder / "set");
  };
  EXPECT_EQ(stated("license: mit # as the paper says"), "mit  ");
  EXPECT_EQ(stated("license:\n- mit\n- apache-2.0"), "mit apache-2.0  ");
  EXPECT_EQ(stated("tags: [a]\nlicense: [mit, apache-2.0]\r"), "mit apache-2.0  ");
  EXPECT_EQ(stated("license: other\nlicense_name: own\nlicense_link: https://a.org/l#1"),
            "other own https://a.org/l#1");
  EXPECT_EQ(stated("license: mit\nlicense: twice"), "mit  ") << "what is wrong beside it does not matter";
  EXPECT_EQ(stated("license:"), "none");
  EXPECT_EQ(stated("license: {a: b}"), "none");
  EXPECT_EQ(stated("tags: [a"), "none");
}

TEST(StatedLicenseTest, ComesFromTheFrontMatterElseFromInfoJson) {
  const testing::HubHome folder;
  EXPECT_EQ(license_at(folder / "set"), "none");
  folder.put("set/meta/info.json", "{\"license\": \"cc-by-4.0\"}");
  EXPECT_EQ(license_at(folder / "set"), "cc-by-4.0  ");
  const std::string readme = "set/README" + std::string(".md");
  folder.put(readme, "---\ntags: [a]\nlicense: \"apache-2.0\"  \n---\nlicense: none of it\n");
  EXPECT_EQ(license_at(folder / "set"), "apache-2.0  ");
  folder.put(readme, "# No front matter\nlicense: not that\n");
  EXPECT_EQ(license_at(folder / "set"), "cc-by-4.0  ");
  folder.put("set/meta/info.json", "{\"license\": 7}");
  EXPECT_EQ(license_at(folder / "set"), "none");
}

TEST(StatedLicenseTest, AFileOfACacheHasThatOfItsSnapshot) {
  const testing::HubHome folder;
  const std::string snapshot = "hub/models--me--wan/snapshots/abc/";
  folder.put(snapshot + "README" + ".md", "---\nlicense: mit\n---\n");
  const std::string file = folder.put(snapshot + "vae/parts/model.safetensors");
  EXPECT_EQ(license_at(file), "mit  ");
  EXPECT_EQ(license_at(folder / (snapshot + "vae")), "mit  ");
  EXPECT_EQ(license_at(folder.put("weights/model.safetensors")), "none");
}

}  // namespace
}  // namespace troupe::workers

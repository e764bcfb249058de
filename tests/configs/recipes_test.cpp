#include <algorithm>

#include "configs/embedded.h"
#include "tests/configs/support.h"
#include "tests/support/folder_files.h"

namespace troupe::configs {
namespace {

using namespace testing;

TEST(RecipesTest, EveryYamlOfTheFolderIsInTheBinary) {
  const std::filesystem::path configs = std::filesystem::path(TROUPE_SOURCE_DIR) / "configs";
  std::size_t on_disk = 0;
  for (const char* folder : {"embodiments", "presets", "recipes"}) {
    for (const auto& entry : std::filesystem::directory_iterator(configs / folder)) {
      ++on_disk;
      const std::string name = std::string(folder) + "/" + entry.path().filename().string();
      const auto file = find_embedded(name);
      ASSERT_TRUE(file) << name << " is missing from configs/CMakeLists.txt";
      EXPECT_EQ(file->text, text_of(entry.path())) << name;
    }
  }
  EXPECT_EQ(embedded_files().size(), on_disk);
}

TEST(RecipesTest, EveryPresetAndRecipeLoads) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("embodiments/")) continue;  // parts of jobs; EmbodimentFileTest loads them
    SCOPED_TRACE(std::string(file.name));
    job_of(load_job(std::string(file.name), {}));
  }
}

TEST(RecipesTest, NoRecipeIsDoubted) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with("recipes/")) continue;  // presets of large models start from weights that a recipe names
    const LoadOutcome outcome = load_job(std::string(file.name), {});
    ASSERT_TRUE(outcome.config) << file.name;
    EXPECT_TRUE(outcome.config->warnings.empty()) << outcome.config->warnings.front();
  }
}

TEST(RecipesTest, RatesBelongToPresets) {
  const double random = job_of(load_job("presets/dreamzero_tiny.yaml", {})).optimizer.lr;
  EXPECT_EQ(job_of(load_job("presets/dreamzero_micro.yaml", {})).optimizer.lr, random);
  for (const char* recipe : {"quickstart:sft", "recipes/sft_gr1_tiny.yaml", "recipes/sft_g1_bottle_tiny.yaml"}) {
    const LoadOutcome outcome = load_job(recipe, {});
    EXPECT_EQ(job_of(outcome).optimizer.lr, random) << recipe;
    EXPECT_TRUE(contains(outcome.config->provenance.at("optimizer.lr"), "presets/dreamzero_"));
  }
  for (const char* preset : {"presets/dreamzero_wan22_5b.yaml", "presets/dreamzero_wan21_14b.yaml"}) {
    EXPECT_EQ(job_of(load_job(preset, {})).optimizer.lr, 1e-5) << preset;
  }
}

TEST(RecipesTest, RecipesAreShortAndSayWhatTheyAreFor) {
  for (const EmbeddedFile& file : embedded_files()) {
    EXPECT_LT(std::count(file.text.begin(), file.text.end(), '\n'), 60) << file.name;
    EXPECT_TRUE(file.text.starts_with("# ")) << file.name;
  }
}

TEST(RecipesTest, ShortNamesResolve) {
  EXPECT_EQ(find_embedded("quickstart:sft")->name, "recipes/quickstart_sft.yaml");
  EXPECT_EQ(find_embedded("dreamzero_tiny")->name, "presets/dreamzero_tiny.yaml");
  EXPECT_EQ(find_embedded("recipes/sft_gr1_tiny")->name, "recipes/sft_gr1_tiny.yaml");
  EXPECT_FALSE(find_embedded("quickstart:nothing"));
  EXPECT_EQ(job_of(load_job("quickstart:sft", {})).job.name, "quickstart-sft");
}

TEST(RecipesTest, PresetsHaveTheDimensionsOfTheirModels) {
  const ModelConfig five = job_of(load_job("presets/dreamzero_wan22_5b.yaml", {})).model;
  EXPECT_EQ(five.dit.dim, 3072);
  EXPECT_EQ(five.dit.num_layers, 30);
  EXPECT_EQ(five.dit.in_dim, 48);
  const ModelConfig fourteen = job_of(load_job("presets/dreamzero_wan21_14b.yaml", {})).model;
  EXPECT_EQ(fourteen.dit.dim, 5120);
  EXPECT_EQ(fourteen.dit.in_dim, 36);
  EXPECT_EQ(fourteen.codec.channels, 16);
}

TEST(RecipesTest, TheRecordingsFolderIsGivenOnTheCommandLine) {
  const auto outcome = load_job("recipes/sft_gr1_tiny.yaml", {"data.sets[0].path=/data/gr1"});
  EXPECT_EQ(job_of(outcome).data.sets.at(0).path, "/data/gr1");
}

}  // namespace
}  // namespace troupe::configs

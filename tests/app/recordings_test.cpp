// Real recordings, end to end with two rank processes.
#include <cstdlib>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

class RecordingsTest : public RunTest {
 protected:
  void expect_recipe_trains(const std::string& recipe, const std::string& dataset) {
    const char* named = std::getenv("TROUPE_SHARED_DATA");
    const std::string shared = named != nullptr ? named : TROUPE_SOURCE_DIR "/../shared/data";
    const std::string path = shared + "/" + dataset;
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << "RecordingsTest of " << dataset << ": TROUPE_SHARED_DATA does not hold it";
    }
    ASSERT_TRUE(succeeded(troupe({"run", std::string(TROUPE_SOURCE_DIR) + "/configs/recipes/" + recipe,
                                  "data.sets[0].path=" + path, "training.steps=6"})));
    expect_verified(24);
    EXPECT_EQ(curve("train/loss").size(), 6u);
  }
};

TEST_F(RecordingsTest, AHumanoidPicksAndPlaces) { expect_recipe_trains("sft_gr1_tiny.yaml", "gr1-pick-place"); }

TEST_F(RecordingsTest, AHumanoidHandlesABottle) { expect_recipe_trains("sft_g1_bottle_tiny.yaml", "g1-bottle"); }

}  // namespace
}  // namespace troupe::app

// Links that are bad all the time.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

struct Weather {
  std::string name;
  LinkFaults faults;
};

class WeatherTest : public LabTest, public ::testing::WithParamInterface<Weather> {};

TEST_P(WeatherTest, AJobOverBadLinksCompletesWithTheSameWeights) {
  if (!make_lab(Kind::sft, 10)) return;
  lab().set_all(GetParam().faults);
  job().start();
  expect_complete();
  const LinkCounts counts = lab().counts();
  if (GetParam().faults.loss > 0) {
    EXPECT_GT(counts.lost, 0);
  }
  if (GetParam().faults.duplicate > 0) {
    EXPECT_GT(counts.duplicated, 0);
  }
  if (GetParam().faults.reorder > 0) {
    EXPECT_GT(counts.reordered, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Links, WeatherTest,
                         ::testing::Values(Weather{"FivePercentLoss", {.loss = 0.05}},
                                           Weather{"FiftyMillisecondsDelay", {.delay = 50ms, .jitter = 10ms}},
                                           Weather{"DoublesAndReordering",
                                                   {.duplicate = 0.05, .reorder = 0.1, .reorder_by = 20ms}}),
                         [](const auto& weather) { return weather.param.name; });

}  // namespace
}  // namespace troupe::testing

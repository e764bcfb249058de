// Machines that lose their network for a while, and come back.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(LabTest, ACutOfFiveSecondsCostsNothing) {
  if (!make_lab(Kind::sft, 20)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  cut_for(1, 5s);
  expect_complete();
  EXPECT_THAT(job().said(), Not(HasSubstr("is lost"))) << "silent for less than cluster.lease_s";
}

TEST_F(LabTest, ANodeThatWasCutForTwentySecondsIsAdopted) {
  if (!make_lab(Kind::sft, 120)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  const auto kept = job().nodes[2]->hosts();
  cut_for(2, 20s);
  ASSERT_TRUE(job().job->wait_output(job().node_name(2) + " \\(c\\) is back", 40s)) << job().said();
  EXPECT_EQ(job().nodes[2]->hosts(), kept) << "its hosts were kept through the cut";
  expect_complete();
  EXPECT_THAT(job().job->output(), HasSubstr(job().node_name(2) + " (c) is lost"));
}

TEST_F(LabTest, SimulatorsOfACutNodeGoOnElsewhere) {
  if (!make_lab(Kind::rl, 20)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(2)) << job().said();
  cut_for(1, 5s);
  expect_complete();
}

}  // namespace
}  // namespace troupe::testing

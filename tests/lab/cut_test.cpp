// Machines that lose their network for a while, and come back.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(LabTest, ACutOfFiveSecondsCostsNothing) {
  if (!make_lab(Kind::sft, 12)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  cut_for(1, 5s);
  expect_complete();
  EXPECT_THAT(job().said(), Not(HasSubstr("is lost"))) << "silent for less than cluster.lease_s";
}

TEST_F(LabTest, ANodeThatWasCutForTwentySecondsKeepsItsHostsAndJoinsAgain) {
  if (!make_lab(Kind::sft, 70)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  const auto kept = job().nodes[2]->hosts();
  lab().set_machine(2, {.cut = true});
  ASSERT_TRUE(job().job->wait_output(job().node_name(2) + " \\(c\\) is lost", 20s)) << job().said();
  last(8s);  // 20 in all, of which cluster.lease_s is 10; cluster.orphan_s is 60
  EXPECT_EQ(job().nodes[2]->hosts(), kept);
  lab().set_machine(2, job().options.links);
  const std::string joined = "node c joined as " + job().node_name(2);
  ASSERT_TRUE(job().job->wait_until(
      [&] {
        const std::string text = job().job->output();
        return text.find(joined, text.find("is lost")) != std::string::npos;
      },
      20s))
      << job().said();
  expect_complete();
}

TEST_F(LabTest, ACutOfFiveSecondsCostsSimulatorsNothing) {
  if (!make_lab(Kind::rl, 12)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(2)) << job().said();
  cut_for(1, 5s);
  expect_complete();
}

}  // namespace
}  // namespace troupe::testing

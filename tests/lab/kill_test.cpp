// Nodes and machines that die, and come again under the same name.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(LabTest, AKilledNodeJoinsAgain) {
  if (!make_lab(Kind::sft, 60, /*needs_links=*/false)) return;
  job().start({"cluster.lease_s=3"});
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  auto& node = job().nodes[1];
  const std::string name = job().node_name(1);
  const auto hosted = node->hosts();
  node->kill(SIGKILL);
  ASSERT_EQ(node->wait(10s), 128 + SIGKILL);
  node = job().node(1);
  ASSERT_TRUE(node->wait_output("joined as " + name + " ")) << job().said();
  for (const auto& [instance, pid] : hosted) EXPECT_FALSE(JobProcess::is_running(pid)) << instance;
  expect_complete();
}

TEST_F(LabTest, AMachineThatLosesItsPowerIsReplacedByAFreshOne) {
  if (!make_lab(Kind::sft, 60)) return;
  job().start({"cluster.lease_s=3"});
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  const std::string name = job().node_name(2);
  lab().power_off(2);
  job().nodes[2].reset();
  job().clear_runtime(2);  // what a machine keeps for as long as it is on
  lab().power_on(2);
  job().nodes[2] = job().node(2);
  EXPECT_TRUE(job().nodes[2]->wait_output("joined as " + name + " ")) << job().said();
  expect_complete();
}

TEST_F(LabTest, SimulatorsOfAKilledNodeMove) {
  if (!make_lab(Kind::rl, 30, /*needs_links=*/false)) return;
  job().start({"cluster.lease_s=3"});
  ASSERT_TRUE(job().wait_step(2)) << job().said();
  job().nodes[1]->kill(SIGKILL);
  ASSERT_EQ(job().nodes[1]->wait(10s), 128 + SIGKILL);
  job().nodes[1].reset();
  job().clear_runtime(1);
  expect_complete_with_other_episodes();
}

}  // namespace
}  // namespace troupe::testing

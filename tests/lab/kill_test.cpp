// A node that dies, and comes again under the same name.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

TEST_F(LabTest, AKilledNodeJoinsAgain) {
  if (!make_lab(Kind::sft, 30, /*needs_links=*/false)) return;
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

}  // namespace
}  // namespace troupe::testing

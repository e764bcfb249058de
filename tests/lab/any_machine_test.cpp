// Every machine cut for 5 and for 20 seconds under both kinds of job, and machines that lose their power.
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

struct Cut {
  LabJob::Kind kind;
  std::size_t machine;
  int seconds;
};

class CutTest : public LabTest, public ::testing::WithParamInterface<Cut> {};

TEST_P(CutTest, TheJobCompletes) {
  const auto [kind, machine, seconds] = GetParam();
  if (!make_lab(kind, seconds == 5 ? 30 : 120)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  cut_for(machine, std::chrono::seconds(seconds));
  // what is shorter than the lease costs no simulator its episodes
  if (kind == Kind::sft || seconds == 5) {
    expect_complete();
  } else {
    expect_complete_with_other_episodes();
  }
}

std::vector<Cut> all_cuts() {
  std::vector<Cut> all;
  for (const auto kind : {LabJob::Kind::sft, LabJob::Kind::rl}) {
    for (const std::size_t machine : {0, 1, 2}) {
      for (const int seconds : {5, 20}) all.push_back({kind, machine, seconds});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Any, CutTest, ::testing::ValuesIn(all_cuts()), [](const auto& cut) {
  return std::string(cut.param.kind == LabJob::Kind::sft ? "Sft" : "Rl") + "Machine" +
         std::string(1, static_cast<char>('A' + cut.param.machine)) + "For" + std::to_string(cut.param.seconds) +
         "Seconds";
});

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

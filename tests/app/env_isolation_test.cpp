// Who steps a job's environments where the job leaves it open, and the reason that a plan gives.
#include "app/env_isolation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "env/registry/registry.h"
#include "tests/support/scratch_folder.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Facts of 16 CartPoles in two blocks on two cores.
EnvIsolationFacts cart_poles() { return {.env = "CartPole-v1", .envs = 8, .exec_steps = 1, .blocks = 2, .cores = 2}; }
EnvIsolationFacts timed(double seconds) {
  EnvIsolationFacts facts = cart_poles();
  facts.timed = TimedEnvStep{.seconds = seconds, .day = "2027-01-15"};
  return facts;
}
std::string chosen(const EnvIsolationFacts& facts) { return to_text(choose_env_isolation(facts)); }

TEST(EnvIsolationTest, WhatIsBuiltInAndNotTimedIsSteppedInline) {
  EXPECT_EQ(chosen(cart_poles()), "inline: CartPole-v1 is built in, and not timed here yet");
  EnvIsolationFacts facts = cart_poles();
  facts.is_other_machine = true;
  EXPECT_EQ(chosen(facts), "inline: CartPole-v1 is built in, and what it takes on other machines is not known");
}

TEST(EnvIsolationTest, ShortStepsAreInlineAndLongOnesInProcesses) {
  EXPECT_THAT(chosen(timed(25e-6)),
              AllOf(HasSubstr("inline: a step of a block takes 200 us (timed here on 2027-01-15), "),
                    HasSubstr("and in a process 3.5 times as long, for the hand-over")));
  EXPECT_THAT(chosen(timed(4e-3)),
              AllOf(HasSubstr("process: a step of a block takes 32 ms (timed here on 2027-01-15), "),
                    HasSubstr("of which the hand-over to a process is "), HasSubstr(" %; a crash costs a simulator")));
}

TEST(EnvIsolationTest, ABlockHasTheStepsOfItsEnvironmentsAndOfAChunk) {
  EnvIsolationFacts facts = timed(20e-6);
  EXPECT_EQ(choose_env_isolation(facts).isolation, "inline");
  facts.exec_steps = 50;
  EXPECT_THAT(chosen(facts), HasSubstr("process: a step of a block takes 8 ms"));
  facts.threads = 4;
  EXPECT_THAT(chosen(facts), HasSubstr("inline: a step of a block takes 2 ms")) << "four threads share a block";
}

TEST(EnvIsolationTest, SimulatorsShareABlockAmongCoresThatNoOtherBlockHas) {
  EnvIsolationFacts facts = timed(200e-6);
  facts.cores = 16;
  EXPECT_THAT(chosen(facts),
              AllOf(HasSubstr("process: a step of a block takes 1.6 ms (timed here on 2027-01-15), and "),
                    HasSubstr(" in simulators, which share it among 16 cores; a crash costs a ")));
  facts.blocks = 16;
  EXPECT_EQ(choose_env_isolation(facts).isolation, "inline") << "a core for each block";
  facts.blocks = 1;
  facts.envs = 1;
  EXPECT_EQ(choose_env_isolation(facts).isolation, "inline") << "one environment is stepped by one core";
}

TEST(EnvIsolationTest, WhatRolloutWorkersCannotStepStaysInProcessesWhateverItTakes) {
  EnvIsolationFacts facts = timed(1e-6);
  facts.waits_for_others = true;
  EXPECT_EQ(chosen(facts),
            "process: CartPole-v1 is stepped by Python's workers, for whom a rollout worker would stand still");
  facts = timed(1e-6);
  facts.is_made_here = false;
  EXPECT_EQ(chosen(facts), "process: CartPole-v1 cannot be made here, but by simulators elsewhere");
  facts = timed(1e-6);
  facts.is_large_policy = true;
  EXPECT_THAT(chosen(facts), HasSubstr("process: every rollout worker holds the world-action model"));
}

TEST(EnvIsolationTest, CodeThatIsNotTroupesStaysInProcesses) {
  EnvIsolationFacts facts = timed(1e-6);
  facts.is_built_in = false;
  EXPECT_EQ(chosen(facts),
            "process: CartPole-v1 is not built in, and a crash costs a simulator; inline is faster where steps are "
            "short");
}

TEST(EnvIsolationTest, AJobThatAsksForSimulatorsHasThem) {
  EnvIsolationFacts facts = cart_poles();
  facts.named_by = "cluster.elastic.env";
  EXPECT_EQ(chosen(facts), "process: cluster.elastic.env asks for simulators");
  facts = cart_poles();
  facts.elsewhere = "cluster.num_nodes is 2";
  EXPECT_EQ(chosen(facts),
            "process: cluster.num_nodes is 2, and environments are stepped on other machines by simulators alone");
}

TEST(EnvIsolationTest, ARunThatGoesOnStaysAsItBegan) {
  EnvIsolationFacts facts = timed(2e-3);
  facts.before = "inline";
  EXPECT_EQ(chosen(facts), "inline: as the run began");
  facts.named_by = "cluster.component_placement.env";
  EXPECT_EQ(choose_env_isolation(facts).isolation, "process") << "it says so today";
}

/// Jobs as they are loaded, with a cache of times of their own.
class SettledIsolationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::configure("test", "");
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  /// "inline: ..." for a recipe of four Pendulums in two blocks, with further settings; "" where nothing is settled.
  std::string settled(const std::vector<std::string>& more, const SteppingPlace& place = {}) {
    auto loaded = load_job("recipes/rl_pendulum_sac.yaml", more);
    EXPECT_TRUE(loaded.config) << ::testing::PrintToString(loaded.errors);
    if (!loaded.config) return "not loaded";
    job_ = loaded.config->job;
    const auto env = env_spec_of(job_.env);
    const auto choice = settle_env_isolation(*loaded.config, env ? *env : EnvSpec{}, place);
    const auto recorded = load_job_text("recorded.yaml", loaded.config->resolved_yaml, {});
    EXPECT_TRUE(recorded.config);
    EXPECT_EQ(recorded.config->job.cluster.isolation, loaded.config->job.cluster.isolation);
    if (!choice) return "";
    EXPECT_EQ(recorded.config->job.cluster.isolation.at("env"), choice->isolation);
    EXPECT_EQ(loaded.config->provenance.at("cluster.isolation.env"), "default");
    return to_text(*choice);
  }

  ScratchFolder cache_;
  JobConfig job_;
};

TEST_F(SettledIsolationTest, AutoIsTheDefaultAndWhatAJobSaysIsKept) {
  const std::string open = "inline: Pendulum-v1 is built in, and not timed here yet";
  EXPECT_EQ(settled({}), open);
  EXPECT_EQ(settled({"cluster.isolation.env=auto"}), open);
  EXPECT_EQ(settled({"cluster.isolation.rollout=thread"}), open);
  for (const char* said : {"inline", "thread", "process"})
    EXPECT_EQ(settled({std::string("cluster.isolation.env=") + said}), "");
}

TEST_F(SettledIsolationTest, ATimeOfThisMachineDecidesHere) {
  settled({});
  keep_env_step_time(job_, 0.5, base::FakeClock(1.8e9));
  EXPECT_THAT(settled({}), HasSubstr("process: a step of a block takes 1 s (timed here on 2027-01-15)"));
  EXPECT_THAT(settled({}, {.is_here = false}),
              HasSubstr("inline: Pendulum-v1 is built in, and what it takes on other"));
}

TEST_F(SettledIsolationTest, TheKeyThatSpeaksOfSimulatorsIsNamed) {
  EXPECT_EQ(settled({"cluster.elastic.env={max: 4}"}), "process: cluster.elastic.env asks for simulators");
  EXPECT_EQ(settled({"cluster.component_placement={\"rollout, env\": \"0\"}"}),
            "process: cluster.component_placement.rollout, env asks for simulators");
  EXPECT_THAT(settled({"cluster.num_nodes=2"}), HasSubstr("process: cluster.num_nodes is 2, "));
  EXPECT_THAT(settled({}, {.listens = true}), HasSubstr("process: other machines may join (--listen), "));
}

TEST_F(SettledIsolationTest, ARunGoesOnAsItWasRecorded) {
  const ResumePoint point{.run = RunDirectory("runs/job/1"), .env_isolation = "process"};
  EXPECT_EQ(settled({}, {.point = &point}), "process: as the run began");
  const ResumePoint fresh;
  EXPECT_THAT(settled({}, {.point = &fresh}), HasSubstr("inline: "));
}

TEST_F(SettledIsolationTest, ProgramsEnvironmentsAreNotBuiltIn) {
  EXPECT_TRUE(is_built_in("Pendulum-v1"));
  EXPECT_FALSE(is_built_in("Pendulum-v2"));
  const auto rows = env_registry();
  EnvRow own = *std::find_if(rows.begin(), rows.end(), [](const EnvRow& row) { return row.id == "reach-v1"; });
  register_env(own);
  EXPECT_FALSE(is_built_in("reach-v1")) << "a program's row replaced it";
}

TEST_F(SettledIsolationTest, AnotherKindOfJobHasNone) {
  auto loaded = load_job("presets/dreamzero_tiny.yaml", {});
  ASSERT_TRUE(loaded.config);
  EXPECT_FALSE(settle_env_isolation(*loaded.config, {}, {}));
  EXPECT_EQ(loaded.config->job.cluster.isolation.count("env"), 0u);
}

}  // namespace
}  // namespace troupe::app

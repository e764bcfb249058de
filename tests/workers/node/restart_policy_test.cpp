#include "workers/node/restart_policy.h"

#include <gtest/gtest.h>

#include <csignal>
#include <ostream>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using Action = RestartDecision::Action;

const RestartPolicy::Time kStart{};

RestartConfig config() {
  RestartConfig c;
  c.budget = 3;
  c.component_budget = 5;
  c.window = 300s;
  c.backoff_initial = 0.5s;
  c.backoff_max = 30s;
  return c;
}

ActorDeath crash(const std::string& actor = "decoder/0") {
  ActorDeath death;
  death.actor = actor;
  death.component = "decoder";
  death.signal = SIGSEGV;
  return death;
}

struct EndCase {
  const char* name;
  int exit_code, signal;
  bool out_of_memory;
  Action action;
};
std::ostream& operator<<(std::ostream& out, const EndCase& c) { return out << c.name; }

class RestartPolicyEndTest : public ::testing::TestWithParam<EndCase> {};

TEST_P(RestartPolicyEndTest, DecidesByHowItEnded) {
  const EndCase& c = GetParam();
  RestartPolicy policy(config());
  const auto decision = policy.on_exit({"decoder/0", "decoder", c.exit_code, c.signal, c.out_of_memory}, kStart);
  EXPECT_EQ(decision.action, c.action) << decision.why;
  EXPECT_NE(decision.why.find("decoder/0"), std::string::npos);
}

TEST(RestartPolicyTest, ADeathThatIsForgivenCountsForNobody) {
  RestartPolicy policy(config());
  for (int death = 0; death < 20; ++death) {
    ASSERT_EQ(policy.on_exit(crash(), kStart + std::chrono::seconds(death)).action, Action::restart) << death;
    if (death >= 2) policy.forgive("decoder/0");
  }
  EXPECT_EQ(policy.on_exit(crash(), kStart + 30s).action, Action::restart);
  EXPECT_EQ(policy.on_exit(crash(), kStart + 31s).action, Action::give_up) << "its budget of 3 is used up";
  EXPECT_EQ(policy.on_exit(crash("decoder/1"), kStart + 32s).action, Action::restart);
  policy.forgive("decoder/7");
}

INSTANTIATE_TEST_SUITE_P(Table, RestartPolicyEndTest,
                         ::testing::Values(EndCase{"Crash", 0, SIGSEGV, false, Action::restart},
                                           EndCase{"Abort", 0, SIGABRT, false, Action::restart},
                                           EndCase{"InternalError", 70, 0, false, Action::restart},
                                           EndCase{"DeviceFault", 74, 0, false, Action::restart},
                                           EndCase{"ForeignSigkill", 0, SIGKILL, false, Action::restart},
                                           EndCase{"OutOfMemory", 0, SIGKILL, true, Action::restart},
                                           EndCase{"Usage", 64, 0, false, Action::give_up},
                                           EndCase{"BadData", 65, 0, false, Action::give_up},
                                           EndCase{"Permission", 77, 0, false, Action::give_up},
                                           EndCase{"UnsafeConfig", 78, 0, false, Action::give_up},
                                           EndCase{"TryAgain", 75, 0, false, Action::restart}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RestartPolicyTest, TheBudgetOfAnActorEndsInGivingUpAndNamesTheKey) {
  RestartPolicy policy(config());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.on_exit(crash(), kStart + i * 10s).action, Action::restart) << i;
  const auto last = policy.on_exit(crash(), kStart + 40s);
  EXPECT_EQ(last.action, Action::give_up);
  EXPECT_NE(last.why.find("cluster.restart.budget"), std::string::npos) << last.why;
}

TEST(RestartPolicyTest, TheWindowSlides) {
  RestartPolicy policy(config());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.on_exit(crash(), kStart + i * 10s).action, Action::restart);
  EXPECT_EQ(policy.on_exit(crash(), kStart + 299s).action, Action::give_up);
  // at 300 s the first of the three has left the window
  EXPECT_EQ(policy.on_exit(crash(), kStart + 300s).action, Action::restart);
  EXPECT_EQ(policy.on_exit(crash(), kStart + 301s).action, Action::give_up);
}

TEST(RestartPolicyTest, AForeignSigkillIsCounted) {
  RestartPolicy policy(config());
  ActorDeath death = crash();
  death.signal = SIGKILL;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.on_exit(death, kStart).action, Action::restart);
  EXPECT_EQ(policy.on_exit(death, kStart).action, Action::give_up);
}

TEST(RestartPolicyTest, ActorsHaveBudgetsOfTheirOwnWithinThatOfTheirRole) {
  RestartPolicy policy(config());
  for (const char* actor : {"decoder/0", "decoder/1", "decoder/2", "decoder/3", "decoder/4"}) {
    const auto decision = policy.on_exit(crash(actor), kStart);
    EXPECT_EQ(decision.action, Action::restart) << actor;
    EXPECT_EQ(decision.delay, 0ms);  // the first of each actor
  }
  const auto last = policy.on_exit(crash("decoder/5"), kStart + 1s);
  EXPECT_EQ(last.action, Action::give_up);
  EXPECT_NE(last.why.find("cluster.restart.component_budget"), std::string::npos) << last.why;
  ActorDeath other = crash("learner/0");
  other.component = "learner";
  EXPECT_EQ(policy.on_exit(other, kStart + 1s).action, Action::restart);
}

TEST(RestartPolicyTest, ABudgetOfZeroNeverRestarts) {
  RestartConfig c = config();
  c.budget = 0;
  EXPECT_EQ(RestartPolicy(c).on_exit(crash(), kStart).action, Action::give_up);
}

TEST(RestartPolicyTest, TheFirstRestartIsImmediateAndPausesDoubleUpToTheLongest) {
  RestartConfig c = config();
  c.budget = c.component_budget = 100;
  RestartPolicy policy(c);
  EXPECT_EQ(policy.on_exit(crash(), kStart).delay, 0ms);
  double expected = 0.5;
  for (int i = 1; i < 12; ++i, expected *= 2) {
    const double seconds = Seconds(policy.on_exit(crash(), kStart + i * 1s).delay).count();
    EXPECT_GE(seconds, std::min(expected * 0.8, 30.0) - 0.001) << i;
    EXPECT_LE(seconds, std::min(expected * 1.2, 30.0) + 0.001) << i;
  }
  EXPECT_EQ(policy.on_exit(crash(), kStart + 20s).delay, 30s);
}

TEST(RestartPolicyTest, ThePauseRepeatsExactlyAndDiffersBetweenActors) {
  const auto second_pause = [](const std::string& actor) {
    RestartPolicy policy(config());
    (void)policy.on_exit(crash(actor), kStart);
    return policy.on_exit(crash(actor), kStart).delay;
  };
  EXPECT_EQ(second_pause("decoder/0"), second_pause("decoder/0"));
  EXPECT_NE(second_pause("decoder/0"), second_pause("decoder/1"));
}

TEST(RestartPolicyTest, ARunOfTenMinutesClearsTheCount) {
  RestartConfig c = config();
  c.window = 24h;
  RestartPolicy policy(c);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.on_exit(crash(), kStart + i * 1s).action, Action::restart);
  policy.on_start("decoder/0", kStart + 10s);
  const auto after_long_run = policy.on_exit(crash(), kStart + 10s + 10min);
  EXPECT_EQ(after_long_run.action, Action::restart);
  EXPECT_EQ(after_long_run.delay, 0ms);
  // a shorter one does not
  for (int i = 0; i < 2; ++i) (void)policy.on_exit(crash(), kStart + 700s);
  policy.on_start("decoder/0", kStart + 800s);
  EXPECT_EQ(policy.on_exit(crash(), kStart + 800s + 9min).action, Action::give_up);
}

TEST(RestartPolicyTest, TryAgainIsNotCounted) {
  RestartPolicy policy(config());
  ActorDeath again = crash();
  again.signal = 0;
  again.exit_code = 75;
  for (int i = 0; i < 20; ++i) {
    const auto decision = policy.on_exit(again, kStart);
    EXPECT_EQ(decision.action, Action::restart);
    EXPECT_GT(decision.delay, 0ms);
  }
  EXPECT_EQ(policy.on_exit(crash(), kStart).delay, 0ms);
}

}  // namespace
}  // namespace troupe::workers

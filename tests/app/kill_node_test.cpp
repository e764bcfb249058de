// A second node agent on this machine: joins, hosts decoders, dies; strangers are refused.
#include "comm/control/curve_keys.h"
#include "tests/app/kill_node_fixture.h"

namespace troupe::app {
namespace {

TEST_F(KillNodeTest, ANodeHostsTheDecodersAndLeavesAfterTheRun) {
  auto job = run("joined", on_node_1(), {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  auto second = node("second");
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output() << second->output();
  EXPECT_EQ(second->hosts().size(), 2u);
  // both hold keys
  for (const pid_t pid : {job->pid(), second->pid()}) {
    EXPECT_TRUE(std::regex_search(text_of("/proc/" + std::to_string(pid) + "/limits"),
                                  std::regex("Max core file size +0 +0 ")));
  }
  EXPECT_EQ(job->hosts().size(), 3u);
  expect_complete(*job, "joined");
  EXPECT_EQ(second->wait(30s), 0) << second->output();
  std::smatch logs;
  const std::string said = second->output();
  ASSERT_TRUE(std::regex_search(said, logs, std::regex("logs of this node: (\\S+)"))) << said;
  for (const char* log : {"node.log", "decoder-0.log", "decoder-1.log"})
    EXPECT_TRUE(std::filesystem::exists(logs[1].str() + "/" + log)) << log;
  EXPECT_EQ(weights("joined"), undisturbed_weights());
}

TEST_F(KillNodeTest, DecodersOfAKilledNodeMove) {
  auto job = run("moved", on_node_1(), {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  auto second = node("second");
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output() << second->output();
  const auto hosted = second->hosts();
  second->kill(SIGKILL);
  ASSERT_EQ(second->wait(10s), 128 + SIGKILL);
  expect_complete(*job, "moved");
  for (const auto& [instance, pid] : hosted) EXPECT_FALSE(JobProcess::is_running(pid)) << instance;
  EXPECT_THAT(job->output(), ::testing::HasSubstr("node/1 (second) is lost"));
  EXPECT_THAT(job->output(), ::testing::HasSubstr("decoder/0 moves to node/0"));
  EXPECT_EQ(weights("moved"), undisturbed_weights());
}

TEST_F(KillNodeTest, ANodeThatJoinsLateTakesScaledUpDecodersAlsoWhenItIsStartedAgain) {
  auto job = run("late", {"training.steps=120"}, {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  ASSERT_TRUE(job->wait_output(step_line(3))) << job->output();
  auto second = node("second");
  ASSERT_TRUE(job->wait_output("second joined as node/1")) << job->output() << second->output();
  auto scale = tool({"scale", run_directory("late"), "decoder=4"});
  ASSERT_EQ(scale->wait(kToolDeadline), 0) << scale->output();
  EXPECT_TRUE(second->wait_until([&] { return second->hosts().size() == 2; }, 30s))
      << scale->output() << second->output();
  second->kill(SIGKILL);
  ASSERT_EQ(second->wait(10s), 128 + SIGKILL);
  // Back under its name before the lease has run out: what it hosted is known to be gone at once.
  auto again = node("second");
  ASSERT_TRUE(job->wait_output("node/1 \\(second\\) is lost")) << job->output();
  expect_complete(*job, "late");
}

TEST_F(KillNodeTest, StrangersAreRefused) {
  auto job = run("strangers", {"training.steps=400"}, {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  ASSERT_TRUE(job->wait_output(step_line(1))) << job->output();

  const auto token = read_token_file(token_);
  const auto keys = generate_keypair();
  ASSERT_TRUE(token && keys);
  const std::string forged = folder_ + "/forged";
  ASSERT_TRUE(write_token_file(forged, {.endpoint = token->endpoint,
                                        .server_key = token->server_key,
                                        .public_key = keys->public_key,
                                        .secret_key = keys->secret_key}));
  auto stranger = tool({"node", "--token-file", forged, "--name", "stranger", "--join-timeout", "3"});
  EXPECT_EQ(stranger->wait(20s), 4) << stranger->output();
  EXPECT_NE(stranger->output().find("did not let this node in"), std::string::npos) << stranger->output();

  const std::string open = folder_ + "/open";
  std::filesystem::copy_file(token_, open);
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  auto careless = tool({"node", "--token-file", open, "--name", "careless"});
  EXPECT_EQ(careless->wait(20s), 2) << careless->output();
  EXPECT_NE(careless->output().find("0644"), std::string::npos) << careless->output();

  EXPECT_EQ(job->output().find("joined"), std::string::npos) << job->output();
  job->kill(SIGTERM);
  EXPECT_EQ(job->wait(60s), 75) << job->output();
}

TEST_F(KillNodeTest, ARunWhoseNodesDoNotComeEndsAtItsDeadlineAndLeavesNothing) {
  const std::string runtime = folder_ + "/runtime";
  std::filesystem::create_directories(runtime);
  auto job = run("alone", {"cluster.num_nodes=2", "cluster.start_timeout_s=2"}, {"--listen", "127.0.0.1:0"},
                 {{"XDG_RUNTIME_DIR", runtime}});
  EXPECT_EQ(job->wait(30s), 4) << job->output();
  EXPECT_THAT(job->output(), ::testing::HasSubstr("cluster.num_nodes is 2"));
  EXPECT_TRUE(std::filesystem::is_empty(runtime + "/troupe"));
  for (const char* file : {"/endpoint", "/token"})
    EXPECT_FALSE(std::filesystem::exists(run_directory("alone") + file)) << file;
}

TEST_F(KillNodeTest, WhatAKilledRunLeftIsRemovedByTheNext) {
  const std::string runtime = folder_ + "/runtime";
  std::filesystem::create_directories(runtime);
  auto killed = run("killed", {}, {"--listen", "127.0.0.1:0"}, {{"XDG_RUNTIME_DIR", runtime}});
  ASSERT_TRUE(killed->wait_output(step_line(1))) << killed->output();
  const std::string first = run_directory("killed"), id = std::filesystem::path(first).filename();
  killed->kill(SIGKILL);
  ASSERT_EQ(killed->wait(10s), 128 + SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(runtime + "/troupe/" + id + "/feed-server.json"));
  ASSERT_TRUE(std::filesystem::exists(first + "/token"));
  auto next = run("killed", {"training.steps=2"}, {}, {{"XDG_RUNTIME_DIR", runtime}});
  EXPECT_EQ(next->wait(kRunDeadline), 0) << next->output();
  for (const char* file : {"/endpoint", "/token"}) EXPECT_FALSE(std::filesystem::exists(first + file)) << file;
  EXPECT_TRUE(std::filesystem::is_empty(runtime + "/troupe"));
}

}  // namespace
}  // namespace troupe::app

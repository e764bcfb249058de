// What a node does for whom: it obeys the controller alone, and starts nothing that another code would load.
#include "workers/node/node_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/host_environment.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

struct NodeRoleTest : ::testing::Test {
  NodeRoleTest() { role.start(); }
  Spawn spawn_of(const std::string& actor) const {
    Spawn spawn;
    spawn.actor = actor;
    spawn.role = actor.substr(0, actor.find('/'));
    spawn.isolation = "thread";
    return spawn;
  }
  /// The reason why the last Spawn could not start; empty: none was told.
  std::string refusal() const { return exits.empty() ? "" : exits.back().stderr_tail; }

  std::vector<std::string> spawned, stopped;
  std::vector<ActorExited> exits;
  NodeRole role{
      {},
      std::make_shared<HostedActors>(),
      [this](const ActorIdentity& id, const std::string&, const NodeRole::OnEnd&) { spawned.push_back(id.instance()); },
      [this](const std::string& actor) { stopped.push_back(actor); },
      [this](const std::string&, const Message& message) {
        if (const auto* exit = std::get_if<ActorExited>(&message)) exits.push_back(*exit);
      }};
};

TEST_F(NodeRoleTest, ObeysTheControllerAlone) {
  for (const char* from : {"decoder/0", "learner/0", "node/1", "second", "cli.1", ""}) {
    role.handle(from, spawn_of("decoder/0"));
    Stop stop;
    stop.actor = "decoder/0";
    role.handle(from, stop);
  }
  EXPECT_THAT(spawned, ::testing::IsEmpty());
  EXPECT_TRUE(exits.empty());
  role.handle("controller", spawn_of("decoder/0"));
  EXPECT_EQ(spawned, std::vector<std::string>{"decoder/0#0"});
}

TEST_F(NodeRoleTest, RefusesVariablesThatSayWhichCodeIsLoaded) {
  const std::vector<const char*> variables{"LD_PRELOAD",
                                           "LD_AUDIT",
                                           "GLIBC_TUNABLES",
                                           "GCONV_PATH",
                                           "PYTHONPATH",
                                           "PATH",
                                           "TROUPE_PARENT_PID",
                                           "TROUPE_PYTHON",
                                           "TROUPE_PYTHON_FOLDER",
                                           "TROUPE_DEVICE_MODULE",
                                           "TROUPE_NVML",
                                           "A=B",
                                           ""};
  for (const char* variable : variables) {
    Spawn spawn = spawn_of("decoder/0");
    spawn.env = {{variable, "x"}};
    role.handle("controller", spawn);
    EXPECT_THAT(refusal(), HasSubstr(std::string(variable) + " may not be set")) << variable;
    EXPECT_FALSE(may_set_for_hosts(variable)) << variable;
  }
  EXPECT_THAT(spawned, ::testing::IsEmpty());
  EXPECT_EQ(exits.size(), variables.size()) << "each is answered, so that the controller does not wait";
  for (const char* variable : {"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "MUJOCO_GL", "NCCL_DEBUG"})
    EXPECT_TRUE(may_set_for_hosts(variable)) << variable;
}

TEST_F(NodeRoleTest, AnActorsNameBecomesNoPath) {
  for (const char* actor :
       {"../../etc/passwd", "decoder/../x", "decoder/", "decoder", "decoder/1/2", "/0", "Decoder/0"}) {
    exits.clear();
    role.handle("controller", spawn_of(actor));
    EXPECT_THAT(refusal(), HasSubstr("is no actor of the role")) << actor;
  }
  Spawn other = spawn_of("decoder/0");
  other.role = "learner";
  role.handle("controller", other);
  EXPECT_THAT(spawned, ::testing::IsEmpty());
}

}  // namespace
}  // namespace troupe::workers

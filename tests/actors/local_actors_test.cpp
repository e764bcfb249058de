// Roles as actors of one process.
#include "actors/local_actors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "base/ids.h"

namespace troupe::actors {
namespace {

constexpr std::chrono::seconds kPatience{10};

/// Writes to itself as soon as it starts, and tells of the answer.
class SelfAddressed {
 public:
  SelfAddressed(std::string name, Outbox outbox, std::promise<void>& arrived)
      : name_(std::move(name)), outbox_(std::move(outbox)), arrived_(arrived) {}
  void start() { outbox_(name_, Peers{}); }
  void handle(const std::string&, const Message&) { arrived_.set_value(); }

 private:
  const std::string name_;
  const Outbox outbox_;
  std::promise<void>& arrived_;
};

class LocalActorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loop = IoLoop::start("test");
    ASSERT_TRUE(loop) << loop.error().message();
    loop_ = std::move(*loop);
    bridge_ = std::make_unique<Bridge>(*loop_, "test", new_incarnation());
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  void TearDown() override {
    system_.reset();
    loop_.reset();
  }

  caf::actor_system_config config_;
  std::unique_ptr<IoLoop> loop_;
  std::unique_ptr<Bridge> bridge_;
  std::unique_ptr<caf::actor_system> system_;
};

TEST_F(LocalActorsTest, AnswersToARolesFirstMessageReachIt) {
  // A controller answers as soon as a role says that it is up, which may be before the thread that spawned it goes on.
  for (int i = 0; i < 200; ++i) {
    std::promise<void> arrived;
    {
      LocalActors actors(*system_, *bridge_, [&](const ActorIdentity& identity, const std::string&, Outbox outbox) {
        return make_role_of<SelfAddressed>(identity.instance(), std::move(outbox), arrived);
      });
      actors.spawn({.actor = "decoder/0", .incarnation = 1}, "decoder", [](const std::string&) {});
      ASSERT_EQ(arrived.get_future().wait_for(kPatience), std::future_status::ready) << "spawn " << i;
    }
  }
}

}  // namespace
}  // namespace troupe::actors

// The shell around a role, on this thread.
#include "actors/role_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/actors/test_scheduler.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What became of a role.
struct Fate {
  std::vector<std::string> heard;  ///< senders, in order
  bool is_destroyed = false;
  std::vector<std::string> ends;  ///< failures that on_end was told
};

/// Throws when it is told to finish.
class BrittleRole {
 public:
  BrittleRole(Fate* fate, bool breaks_at_start) : fate_(fate), breaks_at_start_(breaks_at_start) {}
  ~BrittleRole() { fate_->is_destroyed = true; }
  void start() const {
    if (breaks_at_start_) throw std::runtime_error("no weights");
  }
  void handle(const std::string& from, const Message& message) const {
    fate_->heard.push_back(from);
    if (std::holds_alternative<Finish>(message)) throw std::runtime_error("no disk");
  }

 private:
  Fate* const fate_;
  const bool breaks_at_start_;
};

struct RoleActorTest : ::testing::Test {
  MailboxActor spawn(std::function<std::unique_ptr<Role>()> make) {
    const MailboxActor actor = scheduler.system().spawn(
        role_actor, std::string("learner/0#1"), taken_by("learner"), std::move(make),
        std::function<void(const std::string&)>([this](const std::string& failure) { fate.ends.push_back(failure); }));
    scheduler.run();
    return actor;
  }
  MailboxActor spawn_brittle(bool breaks_at_start) {
    return spawn([this, breaks_at_start] { return make_role_of<BrittleRole>(&fate, breaks_at_start); });
  }
  void send(const MailboxActor& actor, const std::string& from, Message message) {
    caf::anon_send(actor, ControlMessage{from, "learner/0", std::move(message)});
    scheduler.run();
  }

  Fate fate;
  testing::TestScheduler scheduler;
};

TEST_F(RoleActorTest, ARoleThatCannotBeBuiltEndsWithTheReason) {
  spawn([]() -> std::unique_ptr<Role> { throw std::runtime_error("no dataset"); });
  EXPECT_THAT(fate.ends, ElementsAre("could not start: no dataset"));
}

TEST_F(RoleActorTest, ARoleThatThrowsAtItsStartEndsWithTheReason) {
  const MailboxActor actor = spawn_brittle(true);
  EXPECT_TRUE(fate.is_destroyed);
  EXPECT_THAT(fate.ends, ElementsAre("could not start: no weights"));
  send(actor, "late", Peers{});
  EXPECT_THAT(fate.heard, IsEmpty());
}

TEST_F(RoleActorTest, ARoleThatThrowsLaterEndsWithTheMessageAndTheReason) {
  const MailboxActor actor = spawn_brittle(false);
  send(actor, "first", Peers{});
  EXPECT_THAT(fate.ends, IsEmpty());
  send(actor, "second", Finish{});
  EXPECT_TRUE(fate.is_destroyed);
  EXPECT_THAT(fate.ends, ElementsAre("failed while handling finish: no disk"));
  send(actor, "late", Peers{});
  EXPECT_THAT(fate.heard, ElementsAre("first", "second"));
  EXPECT_EQ(fate.ends.size(), 1u);
}

TEST_F(RoleActorTest, ARoleThatIsToldToEndLeavesNoReason) {
  const MailboxActor actor = spawn_brittle(false);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  scheduler.run();
  EXPECT_TRUE(fate.is_destroyed);
  EXPECT_THAT(fate.ends, ElementsAre(""));
}

TEST_F(RoleActorTest, ARoleGetsOnlyTheMessagesOfItsRow) {
  const MailboxActor actor = spawn_brittle(false);
  send(actor, "controller", CheckpointBegin{});
  send(actor, "controller", Peers{});
  EXPECT_EQ(fate.heard.size(), 1u);
  EXPECT_THAT(fate.ends, IsEmpty());
}

}  // namespace
}  // namespace troupe::actors

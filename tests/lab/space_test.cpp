#include "tests/lab/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/scratch_folder.h"

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = Space::missing(); !missing.empty()) GTEST_SKIP() << "no namespaces: " << missing;
  }
  /// What a shell prints there.
  std::string printed(const Space& space, const std::string& script) {
    auto shell = space.start({"/bin/sh", "-c", script}, dir_ / "log");
    EXPECT_EQ(shell.wait(10s), 0) << shell.output();
    return shell.output();
  }
  ScratchFolder dir_;
};

TEST_F(SpaceTest, HasItsOwnNameProcessesNetworkBootIdAndFolders) {
  const std::string hidden = dir_ / "hidden";
  std::filesystem::create_directories(hidden + "/secret");
  const Space space({.name = "island", .boot_id = "00000000-1111-2222-3333-444444444444", .hidden = {hidden}});
  EXPECT_EQ(printed(space, "hostname"), "island\n");
  EXPECT_EQ(printed(space, "cat /proc/sys/kernel/random/boot_id"), "00000000-1111-2222-3333-444444444444\n");
  EXPECT_EQ(printed(space, "ls " + hidden), "");
  EXPECT_EQ(printed(space, "ls /dev/shm"), "");
  EXPECT_LE(std::stoi(printed(space, "ls -d /proc/[0-9]* | wc -l")), 4) << "the first, the shell and what it starts";
  EXPECT_THAT(printed(space, "cat /proc/net/dev"), ::testing::Not(HasSubstr("eth")));
}

TEST_F(SpaceTest, ItsMonotonicClockIsAheadByTheOffset) {
  const Space space({.name = "later", .clock_offset = 100'000s});
  EXPECT_GT(std::stod(printed(space, "cut -d' ' -f1 /proc/uptime")), 100'000);
}

TEST_F(SpaceTest, TellsHowItsProgramEnded) {
  const Space space({.name = "s"});
  EXPECT_EQ(space.start({"/bin/sh", "-c", "exit 7"}, dir_ / "log").wait(10s), 7);
  auto sleeper = space.start({"/bin/sleep", "60"}, dir_ / "log");
  EXPECT_THAT(space.processes(), ::testing::ElementsAre(sleeper.pid()));
  sleeper.kill(SIGTERM);
  EXPECT_EQ(sleeper.wait(10s), 128 + SIGTERM);
  EXPECT_THAT(space.processes(), IsEmpty());
}

TEST_F(SpaceTest, ItsProgramsHearAHangUpAlsoUnderNohup) {
  const Space space({.name = "s"});
  const auto before = ::signal(SIGHUP, SIG_IGN);
  auto sleeper = space.start({"/bin/sh", "-c", "echo up; exec sleep 60"}, dir_ / "log");
  ::signal(SIGHUP, before);
  ASSERT_TRUE(sleeper.wait_output("up"));
  sleeper.kill(SIGHUP);
  EXPECT_EQ(sleeper.wait(10s), 128 + SIGHUP);
}

TEST_F(SpaceTest, PowerOffEndsEveryProcessThere) {
  Space space({.name = "s"});
  auto shell = space.start({"/bin/sh", "-c", "setsid sleep 60 & setsid sleep 60 & wait"}, dir_ / "log");
  ASSERT_TRUE(shell.wait_until([&] { return space.processes().size() == 3; }, 10s));
  const auto all = space.processes();
  space.kill();
  for (const pid_t pid : all) EXPECT_FALSE(JobProcess::is_running(pid));
  EXPECT_EQ(shell.wait(10s), 128 + SIGKILL);
}

TEST_F(SpaceTest, SeesWhoListens) {
  const Space space({.name = "s"});
  EXPECT_THAT(space.sockets(), IsEmpty());
  FileDescriptor socket;
  space.in_network([&] {
    socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::listen(socket.get(), 1), 0);
  });
  EXPECT_THAT(space.sockets(), SizeIs(1));
}

}  // namespace
}  // namespace troupe::testing

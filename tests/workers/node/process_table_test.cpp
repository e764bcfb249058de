#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <semaphore>
#include <thread>

#include "base/log.h"
#include "tests/support/control_group.h"
#include "tests/support/folder_files.h"
#include "tests/support/hub_home.h"
#include "tests/support/scratch_folder.h"
#include "workers/node/process.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 30s;

class ProcessTableTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure("test", "", log::Level::warn); }
  void SetUp() override {
    table_ = std::make_unique<ProcessTable>([this](const ProcessExit& exit) {
      const std::lock_guard lock(mutex_);
      exits_.push_back(exit);
      changed_.notify_all();
    });
  }
  void TearDown() override { table_.reset(); }

  std::string log() const { return folder_ + "/logs/child.log"; }
  ProcessSpec shell(const std::string& name, const std::string& script) const {
    return {.name = name, .argv = {"/bin/sh", "-c", script}, .stderr_log = log()};
  }
  pid_t start(const ProcessSpec& spec) { return table_->start(spec).value(); }
  /// The first `count` exits, fewer at the deadline.
  std::vector<ProcessExit> wait_for_exits(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return exits_.size() >= count; });
    EXPECT_GE(exits_.size(), count);
    return exits_;
  }
  std::string log_text() const { return text_of(log()); }

  /// A named pipe and the lines that children write to it.
  std::string make_fifo() {
    const std::string path = folder_ + "/fifo";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    fifo_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    return path;
  }
  std::string read_line() {
    std::string line;
    pollfd item{fifo_, POLLIN, 0};
    while (line.find('\n') == std::string::npos) {
      if (::poll(&item, 1, std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count()) <= 0) return {};
      char c = 0;
      if (::read(fifo_, &c, 1) == 1) line.push_back(c);
    }
    return line.substr(0, line.size() - 1);
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  int fifo_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ProcessExit> exits_;
  std::unique_ptr<ProcessTable> table_;
};

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

TEST_F(ProcessTableTest, AnExitCodeIsReported) {
  const pid_t pid = start(shell("a#0", "exit 7"));
  const auto exits = wait_for_exits(1);
  EXPECT_EQ(exits[0].name, "a#0");
  EXPECT_EQ(exits[0].pid, pid);
  EXPECT_EQ(exits[0].exit_code, 7);
  EXPECT_EQ(exits[0].signal, 0);
  EXPECT_FALSE(exits[0].killed_by_us);
  EXPECT_EQ(table_->num_running(), 0U);
}

TEST_F(ProcessTableTest, AChildKilledFromOutsideIsReportedOnceWithItsSignal) {
  const std::string fifo = make_fifo();
  for (const char* name : {"a", "b", "c"}) start(shell(name, "echo ready > " + fifo + "; exec sleep 60"));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(read_line(), "ready");
  const pid_t pid = start(shell("d", "exec sleep 60"));
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  auto exits = wait_for_exits(1);
  EXPECT_EQ(exits[0].name, "d");
  EXPECT_EQ(exits[0].signal, SIGKILL);
  EXPECT_FALSE(exits[0].killed_by_us);
  // the others go one by one: ends are told in their order, each once
  for (const char* name : {"b", "c", "a"}) {
    const std::size_t before = wait_for_exits(0).size();
    EXPECT_TRUE(table_->kill(name, 0ms));
    wait_for_exits(before + 1);
  }
  exits = wait_for_exits(4);
  ASSERT_EQ(exits.size(), 4U);
  EXPECT_EQ(exits[1].name, "b");
  EXPECT_EQ(exits[2].name, "c");
  EXPECT_EQ(exits[3].name, "a");
  EXPECT_TRUE(exits[3].killed_by_us);
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(ProcessTableTest, AChildThatObeysEndsBySigterm) {
  const std::string fifo = make_fifo();
  start(shell("obedient", "trap 'exit 9' TERM; echo ready > " + fifo + "; while :; do sleep 0.05; done"));
  ASSERT_EQ(read_line(), "ready");
  EXPECT_TRUE(table_->kill("obedient", 60s));
  const auto exits = wait_for_exits(1);
  EXPECT_EQ(exits[0].exit_code, 9);
  EXPECT_EQ(exits[0].signal, 0);
  EXPECT_TRUE(exits[0].killed_by_us);
}

TEST_F(ProcessTableTest, AChildThatIgnoresSigtermIsKilledAfterTheGrace) {
  const std::string fifo = make_fifo();
  start(shell("stubborn", "trap '' TERM; echo ready > " + fifo + "; while :; do sleep 0.05; done"));
  ASSERT_EQ(read_line(), "ready");
  EXPECT_TRUE(table_->kill("stubborn", 100ms));
  const auto exits = wait_for_exits(1);
  EXPECT_EQ(exits[0].signal, SIGKILL);
  EXPECT_TRUE(exits[0].killed_by_us);
}

TEST_F(ProcessTableTest, ASecondKillShortensTheGrace) {
  const std::string fifo = make_fifo();
  start(shell("stubborn", "trap '' TERM; echo ready > " + fifo + "; while :; do sleep 0.05; done"));
  ASSERT_EQ(read_line(), "ready");
  EXPECT_TRUE(table_->kill("stubborn", 1h));
  EXPECT_TRUE(table_->kill("stubborn", 1ms));
  EXPECT_TRUE(table_->kill("stubborn", 1h));  // does not lengthen it again
  EXPECT_EQ(wait_for_exits(1)[0].signal, SIGKILL);
}

TEST_F(ProcessTableTest, AStoppedChildIsKilledToo) {
  const pid_t pid = start(shell("stopped", "exec sleep 60"));
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  EXPECT_TRUE(table_->kill("stopped", 50ms));
  EXPECT_TRUE(wait_for_exits(1)[0].killed_by_us);
}

TEST_F(ProcessTableTest, WhatAChildLeavesInItsGroupIsKilledWithIt) {
  const std::string fifo = make_fifo();
  start(shell("parent", "sleep 60 & echo $! > " + fifo + "; exit 0"));
  const pid_t orphan = std::stoi(read_line());
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, orphan, 0));
  wait_for_exits(1);
  if (pidfd >= 0) {  // else it is gone already
    pollfd item{pidfd, POLLIN, 0};
    EXPECT_EQ(::poll(&item, 1, 30'000), 1);
    ::close(pidfd);
  }
}

TEST_F(ProcessTableTest, TheTailOfStderrComesWithTheExit) {
  start(shell("quiet", "echo from the first run"));
  wait_for_exits(1);
  start(shell("loud",
              "i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; printf '\\377 the end' >&2; exit 3"));
  const auto tail = wait_for_exits(2)[1].stderr_tail;
  EXPECT_EQ(tail.size(), 4096U);
  EXPECT_TRUE(tail.ends_with("line 1999\n? the end")) << tail;  // made UTF-8
  // what an earlier process wrote to the same log is not this one's
  start(shell("brief", "echo only this"));
  EXPECT_EQ(wait_for_exits(3)[2].stderr_tail, "only this\n");
  EXPECT_TRUE(log_text().starts_with("from the first run\n"));
}

TEST_F(ProcessTableTest, MistakesAreRefusedWithASentence) {
  EXPECT_EQ(table_->start({.name = "x", .argv = {}}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(table_->start({.name = "x", .argv = {folder_ + "/absent"}}).error().code(), Errc::not_found);
  EXPECT_EQ(table_->start({.name = "x", .argv = {"/bin/true"}, .stderr_log = "/proc/nowhere/log"}).error().code(),
            Errc::unavailable);
  start(shell("once", "exec sleep 60"));
  EXPECT_EQ(table_->start(shell("once", "exit 0")).error().code(), Errc::invalid_argument);
  EXPECT_FALSE(table_->kill("nobody", 0ms));
}

TEST_F(ProcessTableTest, NothingSurvivesTheTable) {
  const std::string fifo = make_fifo();
  std::vector<pid_t> pids;
  for (int i = 0; i < 5; ++i) {
    pids.push_back(
        start(shell("s" + std::to_string(i), "trap '' TERM; echo ready > " + fifo + "; while :; do sleep 0.05; done")));
    ASSERT_EQ(read_line(), "ready");
  }
  table_->kill_all(20ms);
  EXPECT_EQ(wait_for_exits(5).size(), 5U);
  for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid));
  EXPECT_EQ(table_->start(shell("late", "exit 0")).error().code(), Errc::cancelled);
}

TEST_F(ProcessTableTest, AnExitCallbackMayStartTheNextOne) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> names;
  ProcessTable* self = nullptr;
  ProcessTable table([&](const ProcessExit& exit) {
    const std::lock_guard lock(mutex);
    names.push_back(exit.name);
    changed.notify_all();
    if (names.size() < 3) {
      EXPECT_TRUE(self->start(shell("run" + std::to_string(names.size()), "exit 0")));
    }
  });
  {
    const std::lock_guard lock(mutex);
    self = &table;
  }
  ASSERT_TRUE(table.start(shell("run0", "exit 0")));
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, kPatience, [&] { return names.size() == 3; }));
  EXPECT_EQ(names, (std::vector<std::string>{"run0", "run1", "run2"}));
}

TEST_F(ProcessTableTest, AChildGetsACleanStart) {
  ::setenv("TROUPE_SOMETHING", "inherited", 1);
  ::setenv("SECRET_OF_THE_PARENT", "leaked", 1);
  const int extra = ::open("/dev/null", O_RDONLY);  // would be inherited
  ProcessSpec spec{
      .name = "env", .argv = {TROUPE_TEST_CHILD, "environment"}, .env = {{"GIVEN", "by spec"}}, .stderr_log = log()};
  start(spec);
  EXPECT_EQ(wait_for_exits(1)[0].exit_code, 0);
  const std::string text = log_text();
  EXPECT_NE(text.find("TROUPE_SOMETHING=inherited\n"), std::string::npos) << text;
  EXPECT_NE(text.find("GIVEN=by spec\n"), std::string::npos);
  EXPECT_EQ(text.find("SECRET_OF_THE_PARENT"), std::string::npos);
  EXPECT_EQ(text.find("TROUPE_PARENT_PID"), std::string::npos);  // taken out once checked
  EXPECT_NE(text.find("usr1 blocked: 0\npipe ignored: 0\nown group: 1\nfiles above 2: 0\n"), std::string::npos) << text;
  ::close(extra);
  ::unsetenv("TROUPE_SOMETHING");
  ::unsetenv("SECRET_OF_THE_PARENT");
}

TEST_F(ProcessTableTest, AChildLooksIntoTheSameCaches) {
  const testing::HubHome restored;  // sets the variables back
  const std::string names[] = {"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_LEROBOT_HOME", "HUGGINGFACE_HUB_CACHE"};
  for (const std::string& name : names) ::setenv(name.c_str(), ("/caches/" + name).c_str(), 1);
  start({.name = "env", .argv = {TROUPE_TEST_CHILD, "environment"}, .stderr_log = log()});
  EXPECT_EQ(wait_for_exits(1)[0].exit_code, 0);
  for (const std::string& name : names)
    EXPECT_NE(log_text().find(name + "=/caches/" + name + "\n"), std::string::npos) << name;
}

TEST_F(ProcessTableTest, AChildWhoseParentIsAnotherProcessEndsAtOnce) {
  start(shell("adopted", std::string("TROUPE_PARENT_PID=1 exec ") + TROUPE_TEST_CHILD + " announce " + make_fifo()));
  EXPECT_EQ(wait_for_exits(1)[0].exit_code, 70);
}

TEST_F(ProcessTableTest, AGrandchildDiesWithTheProcessThatStartedIt) {
  const std::string fifo = make_fifo();
  const pid_t middle = start({.name = "middle", .argv = {TROUPE_TEST_CHILD, "middle", fifo}, .stderr_log = log()});
  const std::string line = read_line();
  ASSERT_FALSE(line.empty()) << log_text();
  const pid_t grandchild = std::stoi(line);
  ASSERT_NE(::getpgid(grandchild), ::getpgid(middle)) << "only the parent-death signal may reach it";
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, grandchild, 0));
  ASSERT_GE(pidfd, 0);
  ASSERT_EQ(::kill(middle, SIGKILL), 0);
  pollfd item{pidfd, POLLIN, 0};
  EXPECT_EQ(::poll(&item, 1, 30'000), 1) << "the grandchild outlived its parent";
  ::close(pidfd);
  EXPECT_EQ(wait_for_exits(1)[0].signal, SIGKILL);
}

/// A process that SIGKILL does not end at once, for the test of what is done then.
class UnkillableTest : public ProcessTableTest {
 protected:
  void SetUp() override {
    table_ = std::make_unique<ProcessTable>(
        [this](const ProcessExit& exit) {
          const std::lock_guard lock(mutex_);
          exits_.push_back(exit);
          changed_.notify_all();
        },
        300ms);
  }
  /// Kills "stuck", which the caller holds back; after the report that it does not end calls `let_go`.
  void expect_two_reports(pid_t pid, const std::function<void()>& let_go) {
    EXPECT_TRUE(table_->kill("stuck", 0ms));
    auto exits = wait_for_exits(1);
    ASSERT_EQ(exits.size(), 1U);
    EXPECT_EQ(exits[0].name, "stuck");
    EXPECT_EQ(exits[0].pid, pid);
    EXPECT_TRUE(exits[0].unkillable);
    EXPECT_TRUE(is_alive(pid));
    EXPECT_EQ(table_->num_running(), 0U);
    EXPECT_FALSE(table_->kill("stuck", 0ms));
    EXPECT_FALSE(table_->start(shell("stuck", "true"))) << "its name stands for slots that are in use";
    let_go();
    exits = wait_for_exits(2);
    ASSERT_EQ(exits.size(), 2U);
    EXPECT_FALSE(exits[1].unkillable);
    EXPECT_EQ(exits[1].signal, SIGKILL);
    EXPECT_TRUE(exits[1].killed_by_us);
    EXPECT_FALSE(is_alive(pid));
  }
};

/// Holds a dying process back, as a tracer that asked to be told of its end does, with no right but that over a child.
class Tracer {
 public:
  explicit Tracer(pid_t pid)
      : thread_([this, pid] {
          if (::ptrace(PTRACE_SEIZE, pid, nullptr, reinterpret_cast<void*>(PTRACE_O_TRACEEXIT)) != 0) error_ = errno;
          tried_.release();
          let_go_.acquire();  // the end of the tracing thread lets go of the process
        }) {
    tried_.acquire();
  }
  ~Tracer() { let_go(); }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// errno of the attempt; 0: the process is held.
  int error() const { return error_; }
  void let_go() {
    if (!thread_.joinable()) return;
    let_go_.release();
    thread_.join();
  }

 private:
  int error_ = 0;
  std::binary_semaphore tried_{0}, let_go_{0};
  std::thread thread_;
};

TEST_F(UnkillableTest, AProcessThatOutlivesSigkillIsReportedAndItsEndLater) {
  const std::string fifo = make_fifo();
  const pid_t pid = start(shell("stuck", "echo ready > " + fifo + "; exec sleep 60"));
  ASSERT_EQ(read_line(), "ready");
  Tracer tracer(pid);
  if (tracer.error() == EPERM) GTEST_SKIP() << "this machine lets nobody trace a child";
  ASSERT_EQ(tracer.error(), 0);
  expect_two_reports(pid, [&] { tracer.let_go(); });
}

TEST_F(UnkillableTest, TheTablesEndDoesNotWaitForIt) {
  const std::string fifo = make_fifo();
  const pid_t pid = start(shell("stuck", "echo ready > " + fifo + "; exec sleep 60"));
  ASSERT_EQ(read_line(), "ready");
  Tracer tracer(pid);
  if (tracer.error() == EPERM) GTEST_SKIP() << "this machine lets nobody trace a child";
  ASSERT_EQ(tracer.error(), 0);
  EXPECT_TRUE(table_->kill("stuck", 0ms));
  wait_for_exits(1);
  table_.reset();
  EXPECT_TRUE(is_alive(pid));
  tracer.let_go();
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

// Version 1 of the freezer does what a hung disk does: nothing ends its processes before it lets go.
TEST_F(UnkillableTest, AFrozenControlGroupIsReported) {
  const ControlGroup group("freezer");
  if (!group.missing().empty()) GTEST_SKIP() << group.missing();
  const std::string fifo = make_fifo();
  const pid_t pid = start(shell("stuck", "echo ready > " + fifo + "; exec sleep 60"));
  ASSERT_EQ(read_line(), "ready");
  group.add(pid);
  group.freeze();
  expect_two_reports(pid, [&] { group.thaw(); });
}

TEST_F(ProcessTableTest, AnEndForLackOfMemoryIsToldUnderVersion1Too) {
  const ControlGroup group("memory");
  if (!group.missing().empty()) GTEST_SKIP() << group.missing();
  group.write("memory.limit_in_bytes", std::to_string(std::int64_t{512} << 20));
  start({.name = "node", .argv = {TROUPE_TEST_CHILD, "node-in", group / "cgroup.procs"}, .stderr_log = log()});
  const auto exits = wait_for_exits(1);
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].exit_code, 0) << log_text();
}

}  // namespace
}  // namespace troupe::workers

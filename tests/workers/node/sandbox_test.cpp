// What a confined process may still do, tried in children: as it is, as an unprivileged user, and without Landlock.
#include "workers/node/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/file_descriptor.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Not;

bool can_open(const std::string& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC, 0600)).is_open();
}
/// errno of a system call that fails; 0: it did not.
template <class Call>
int failure_of(Call call) {
  errno = 0;
  return call() < 0 ? errno : 0;
}
bool can_make_socket(int family) { return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)).is_open(); }

/// As on a kernel without Landlock: its system calls are unknown.
void take_landlock_away() {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 447, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog whole{.len = 5, .filter = program};
  ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole);
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"data", "logs", "secrets"}) {
      fs::create_directories(folder_ / folder);
      fs::permissions(folder_ / folder, fs::perms::all);
    }
    fs::permissions(folder_.path(), fs::perms(0755));
    for (const char* file : {"data/clip.mp4", "secrets/key"}) std::ofstream(folder_ / file) << "bytes";
    fs::permissions(folder_ / "secrets/key", fs::perms(0644));
    if (!sandbox_support().seccomp) GTEST_SKIP() << "this kernel has no seccomp";
  }
  SandboxRules rules(SandboxSockets sockets = SandboxSockets::local) const {
    return {.readable = {folder_ / "data"}, .writable = {folder_ / "logs"}, .sockets = sockets};
  }
  /// Runs `body` in a child and expects it to say nothing; what it says is what failed.
  void expect_in_child(const std::function<void(std::ostream& failures)>& body) {
    const std::string said = folder_ / "said";
    std::ofstream out(said, std::ios::trunc);  // opened before the child may not any more
    fs::permissions(said, fs::perms(0666));
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      body(out);
      out.flush();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    EXPECT_EQ(testing::text_of(said), "");
  }
  /// Enters the sandbox and tries everything. Files are confined only with Landlock.
  void try_everything(std::ostream& failures, bool wants_landlock) const {
    const auto expect = [&](bool is_so, const char* what) {
      if (!is_so) failures << what << "\n";
    };
    const pid_t parent = ::getppid();
    const auto entered = enter_sandbox(rules());
    if (!entered) {
      failures << entered.error().message() << "\n";
      return;
    }
    expect((entered->landlock > 0) == wants_landlock, "Landlock is in force as the kernel offers it");
    // no more rights, nothing left behind
    expect(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs");
    expect(::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0, "not dumpable");
    expect(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0, "cannot become dumpable again");
    rlimit core{};
    ::getrlimit(RLIMIT_CORE, &core);
    expect(core.rlim_max == 0, "no core dumps");
    // other programs and processes
    const char* argv[] = {"/bin/true", nullptr};
    expect(failure_of([&] { return ::execv(argv[0], const_cast<char**>(argv)); }) == EPERM, "no other program");
    expect(failure_of([] { return ::fork(); }) == EPERM, "no other process");
    expect(failure_of([&] { return ::ptrace(PTRACE_SEIZE, parent, nullptr, nullptr); }) == EPERM, "no debugging");
    expect(failure_of([&] { return ::kill(parent, 0); }) == EPERM, "no signals to others");
    expect(failure_of([] { return ::kill(::getpid(), 0); }) == 0, "signals to itself");
    bool has_run = false;
    std::thread([&] { has_run = true; }).join();
    expect(has_run, "threads");
    // sockets
    expect(!can_make_socket(AF_INET) && !can_make_socket(AF_INET6) && !can_make_socket(AF_NETLINK), "no network");
    const FileDescriptor local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    expect(local.is_open(), "sockets of the node");
    expect(failure_of([&] { return ::listen(local.get(), 1); }) == EPERM, "nobody is let in");
    // files
    expect(can_open(folder_ / "data/clip.mp4", O_RDONLY), "the dataset is read");
    expect(can_open(folder_ / "logs/decoder.log", O_WRONLY | O_CREAT), "the log is written");
    expect(can_open("/proc/self/status", O_RDONLY), "/proc is read");
    expect(can_open("/dev/null", O_RDWR), "/dev/null");
    if (!wants_landlock) return;
    expect(!can_open(folder_ / "data/new", O_WRONLY | O_CREAT), "the dataset is read only");
    expect(!can_open(folder_ / "data/clip.mp4", O_WRONLY), "its files too");
    expect(::unlink((folder_ / "data/clip.mp4").c_str()) != 0, "nothing is removed from it");
    expect(!can_open(folder_ / "secrets/key", O_RDONLY), "other files are closed");
  }
  bool has_landlock() const { return sandbox_support().landlock > 0; }

  const ScratchFolder folder_{"/tmp"};
};

TEST_F(SandboxTest, AConfinedProcessReadsItsDatasetAndLittleElse) {
  expect_in_child([&](std::ostream& failures) { try_everything(failures, has_landlock()); });
}

TEST_F(SandboxTest, AnUnprivilegedUserIsConfinedInTheSameWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other test ran as an unprivileged user";
  constexpr uid_t kNobody = 65534;
  expect_in_child([&](std::ostream& failures) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) failures << "cannot become nobody\n";
    // as in a program that this user started
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    try_everything(failures, has_landlock());
  });
}

TEST_F(SandboxTest, WithoutLandlockTheRestIsInForce) {
  expect_in_child([&](std::ostream& failures) {
    take_landlock_away();
    if (sandbox_support().landlock != 0) failures << "Landlock is still there\n";
    try_everything(failures, false);
  });
}

TEST_F(SandboxTest, SocketsAreThoseOfTheRules) {
  expect_in_child([&](std::ostream& failures) {
    if (!enter_sandbox(rules(SandboxSockets::none))) failures << "not entered\n";
    if (can_make_socket(AF_UNIX) || can_make_socket(AF_INET)) failures << "none are wanted\n";
  });
  expect_in_child([&](std::ostream& failures) {
    if (!enter_sandbox(rules(SandboxSockets::network))) failures << "not entered\n";
    if (!can_make_socket(AF_UNIX) || !can_make_socket(AF_INET)) failures << "feeds on other machines\n";
    if (can_make_socket(AF_NETLINK) || can_make_socket(AF_PACKET)) failures << "nothing else\n";
  });
}

TEST_F(SandboxTest, AProcessWithThreadsIsRefused) {
  expect_in_child([&](std::ostream& failures) {
    std::thread([&] {
      const auto entered = enter_sandbox(rules());
      if (entered || entered.error().code() != Errc::failed_precondition) failures << "two threads were confined\n";
    }).join();
  });
}

TEST_F(SandboxTest, FoldersThatLinksLeadToAreFound) {
  fs::create_directories(folder_ / "disk/videos");
  std::ofstream(folder_ / "disk/table.parquet") << "rows";
  fs::create_directories(folder_ / "data/meta");
  fs::create_directory_symlink(folder_ / "disk/videos", folder_ / "data/videos");
  fs::create_symlink(folder_ / "secrets/key", folder_ / "data/meta/key");
  fs::create_symlink(folder_ / "data/clip.mp4", folder_ / "data/inside");
  fs::create_symlink(folder_ / "nowhere", folder_ / "data/broken");
  const auto folders = linked_folders(folder_ / "data");
  EXPECT_THAT(folders, ::testing::UnorderedElementsAre(folder_ / "disk/videos", folder_ / "secrets"));
  EXPECT_TRUE(linked_folders(folder_ / "nowhere").empty());
}

}  // namespace
}  // namespace troupe::workers

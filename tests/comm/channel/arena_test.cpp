#include "comm/channel/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "comm/channel/arena_desk.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 8192;

Errc code_of(const Result<Arena>& result) { return result ? Errc::internal : result.error().code(); }

class ArenaTest : public ::testing::Test {
 protected:
  /// An arena that others can attach.
  Arena published() {
    Arena arena = Arena::create("test", kBytes).value();
    arena.publish(folder_.path()).value();
    return arena;
  }
  /// What the desk gives out for another descriptor, as a handle that says kBytes.
  std::string handle_of(int fd) {
    deposit_ = ArenaDesk::leave(folder_.path(), fd).value();
    return "arena:8192:" + deposit_.ticket;
  }

  /// What attaching an arena says once the desk has seen that it is gone, or still says at the deadline. Polled: the
  /// desk has no event for a closed connection.
  static Errc code_once_gone(const std::string& handle) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    for (;;) {
      const Errc code = code_of(Arena::attach(handle, kBytes));
      if (code == Errc::not_found || std::chrono::steady_clock::now() > until) return code;
      std::this_thread::sleep_for(1ms);
    }
  }

  const ScratchFolder folder_{"/tmp"};
  std::unique_ptr<ArenaDesk> desk_ = ArenaDesk::open(folder_.path()).value();
  ArenaDesk::Deposit deposit_;
};

TEST_F(ArenaTest, BothMappingsSeeTheSameBytes) {
  const Arena owner = published();
  auto guest = Arena::attach(owner.handle(), kBytes);
  EXPECT_EQ(guest->bytes().size(), kBytes);
  EXPECT_NE(guest->bytes().data(), owner.bytes().data());
  guest->bytes()[kBytes - 1] = std::byte{42};
  EXPECT_EQ(owner.bytes()[kBytes - 1], std::byte{42});
  EXPECT_EQ(owner.bytes()[0], std::byte{0});
}

TEST_F(ArenaTest, AProcessThatNobodyMayLookIntoSharesItsArena) {
  int line[2];
  ASSERT_EQ(::pipe(line), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_DUMPABLE, 0);
    Arena arena = Arena::create("test", kBytes).value();
    if (!arena.publish(folder_.path())) ::_exit(1);
    arena.bytes()[0] = std::byte{7};
    const std::string& handle = arena.handle();
    if (::write(line[1], handle.data(), handle.size()) < 0) ::_exit(1);
    ::pause();
  }
  ::close(line[1]);  // so that a child that fails ends the line
  char text[256];
  const ssize_t got = ::read(line[0], text, sizeof text);
  ASSERT_GT(got, 0);
  auto guest = Arena::attach(std::string(text, static_cast<std::size_t>(got)), kBytes);
  ASSERT_TRUE(guest) << guest.error().message();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(guest->bytes()[0], std::byte{7}) << "the memory outlives its owner";
  // nobody can attach any more, once the desk has seen that the line is closed
  EXPECT_EQ(code_once_gone(std::string(text, static_cast<std::size_t>(got))), Errc::not_found);
  ::close(line[0]);
}

TEST_F(ArenaTest, AClosedArenaCannotBeAttached) {
  std::string handle;
  { handle = published().handle(); }
  EXPECT_EQ(code_once_gone(handle), Errc::not_found);
}

TEST_F(ArenaTest, AnotherSizeThanThePlansIsRefused) {
  const Arena owner = published();
  EXPECT_EQ(code_of(Arena::attach(owner.handle(), 2 * kBytes)), Errc::invalid_argument);
  // A handle that lies about the file's size is found out by the file.
  std::string liar = owner.handle();
  liar.replace(liar.find("8192"), 4, "16384");
  EXPECT_EQ(code_of(Arena::attach(liar, 2 * kBytes)), Errc::invalid_argument);
}

TEST_F(ArenaTest, ASecretThatWasNotGivenOutOpensNothing) {
  const Arena owner = published();
  std::string guessed = owner.handle();
  guessed.back() = guessed.back() == '0' ? '1' : '0';
  EXPECT_EQ(code_of(Arena::attach(guessed, kBytes)), Errc::not_found);
  EXPECT_TRUE(Arena::attach(owner.handle(), kBytes));
}

TEST_F(ArenaTest, WithoutADeskNobodyAttaches) {
  const Arena owner = published();
  desk_.reset();
  EXPECT_EQ(code_of(Arena::attach(owner.handle(), kBytes)), Errc::not_found);
  EXPECT_FALSE(Arena::create("test", kBytes)->publish(folder_.path()));
}

TEST_F(ArenaTest, TheDeskOfADeadNodeIsReplacedAndThatOfALivingOneNot) {
  EXPECT_EQ(ArenaDesk::open(folder_.path()).error().code(), Errc::unavailable);
  const pid_t child = ::fork();
  const std::string other = folder_ / "other";
  if (child == 0) {
    ::mkdir(other.c_str(), 0700);
    const auto desk = ArenaDesk::open(other);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(other + "/arenas"));
  EXPECT_TRUE(ArenaDesk::open(other));
}

TEST_F(ArenaTest, RubbishAtTheDeskEndsThatLineOnly) {
  const int line = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ / "arenas";
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::connect(line, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string rubbish(5000, 'x');
  ASSERT_GT(::send(line, rubbish.data(), rubbish.size(), MSG_NOSIGNAL), 0);
  char byte = 0;
  EXPECT_EQ(::recv(line, &byte, 1, 0), 0) << "the desk hangs up";
  ::close(line);
  const Arena owner = published();
  EXPECT_TRUE(Arena::attach(owner.handle(), kBytes));
}

TEST_F(ArenaTest, AFileThatIsNotSealedIsRefused) {
  const int other = ::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::ftruncate(other, kBytes), 0);
  for (const ArenaPlace farthest : {ArenaPlace::memory, ArenaPlace::disk})
    EXPECT_EQ(code_of(Arena::attach(handle_of(other), kBytes, farthest)), Errc::failed_precondition);
  ::close(other);
}

TEST_F(ArenaTest, OneOnADiskIsSharedLikeOneInMemory) {
  const ScratchFolder disk("/var/tmp");
  Arena owner = Arena::create_on_disk(disk.path(), kBytes).value();
  owner.publish(folder_.path()).value();
  EXPECT_EQ(code_of(Arena::attach(owner.handle(), kBytes)), Errc::failed_precondition) << "memory alone was expected";
  const Arena other = Arena::attach(owner.handle(), kBytes, ArenaPlace::disk).value();
  owner.bytes()[kBytes - 1] = std::byte{5};
  EXPECT_EQ(other.bytes()[kBytes - 1], std::byte{5});
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
  EXPECT_EQ(code_of(Arena::create_on_disk(disk.path(), 0)), Errc::invalid_argument);
}

TEST_F(ArenaTest, AFileWithANameIsRefused) {
  const ScratchFolder disk("/var/tmp");
  const std::string name = disk / "named";
  const int other = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::ftruncate(other, kBytes), 0);
  EXPECT_EQ(code_of(Arena::attach(handle_of(other), kBytes, ArenaPlace::disk)), Errc::failed_precondition);
  ::close(other);
}

TEST_F(ArenaTest, NobodyCanResizeIt) {
  const Arena owner = published();
  const auto fd = ArenaDesk::fetch(owner.handle().substr(std::string("arena:8192:").size()));
  ASSERT_TRUE(fd);
  EXPECT_NE(::ftruncate(fd->get(), kBytes / 2), 0);
  EXPECT_NE(::ftruncate(fd->get(), kBytes * 2), 0);
}

TEST_F(ArenaTest, MalformedHandlesAreRefused) {
  const std::string secret(32, 'a');
  for (const std::string& handle :
       {std::string(), std::string("arena:"), std::string("arena:8192"), "arena:8192:" + secret,
        "arena:8192:relative/arenas:" + secret, "arena:x:/tmp/arenas:" + secret, "memfd:8192:/tmp/arenas:" + secret,
        "arena:8192:/tmp/arenas:" + secret + "a", "arena:8192:/tmp/arenas:" + std::string(32, 'Z'),
        "arena:-1:/tmp/arenas:" + secret, "arena:99999999999999999999:/tmp/arenas:" + secret}) {
    EXPECT_EQ(code_of(Arena::attach(handle, kBytes)), Errc::invalid_argument) << handle;
  }
}

TEST_F(ArenaTest, AnEmptyArenaIsRefused) { EXPECT_EQ(code_of(Arena::create("test", 0)), Errc::invalid_argument); }

TEST_F(ArenaTest, MoreMemoryThanThereIsIsAnErrorAtOnce) {
  EXPECT_EQ(Arena::create("test", std::size_t{1} << 50).error().code(), Errc::resource_exhausted);
}

}  // namespace
}  // namespace troupe::comm

#include "base/file_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>

#include "base/file_io.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

namespace fs = std::filesystem;

class FileLockTest : public ::testing::Test {
 protected:
  /// A process that has the lock and lives until it is killed.
  pid_t start_owner() const {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto lock = FileLock::acquire(path_);
      const char word = lock ? 'y' : 'n';
      if (::write(ready[1], &word, 1) == 1) ::pause();
      ::_exit(1);
    }
    char word = 0;
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
  }
  static void end(pid_t child) {
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
  ScratchFolder folder_;
  std::string path_ = folder_ / "lock";
};

TEST_F(FileLockTest, HoldsTheOwnersProcessId) {
  EXPECT_EQ(FileLock::holder(path_).value(), std::nullopt) << "no file";
  {
    const FileLock lock = FileLock::acquire(path_).value();
    EXPECT_EQ(read_file(path_).value(), std::to_string(::getpid()) + "\n");
    EXPECT_EQ(FileLock::holder(path_).value(), ::getpid());
  }
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_EQ(FileLock::holder(path_).value(), std::nullopt) << "the file alone is no lock";
  EXPECT_TRUE(FileLock::acquire(path_));
}

TEST_F(FileLockTest, IsRefusedWithTheNameOfTheOwner) {
  const pid_t owner = start_owner();
  const auto second = FileLock::acquire(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::failed_precondition);
  EXPECT_THAT(second.error().message(),
              ::testing::AllOf(::testing::HasSubstr(path_), ::testing::HasSubstr(std::to_string(owner))));
  EXPECT_EQ(FileLock::holder(path_).value(), owner);
  end(owner);
}

TEST_F(FileLockTest, IsFreeAsSoonAsItsOwnerIsKilled) {
  end(start_owner());
  EXPECT_EQ(FileLock::holder(path_).value(), std::nullopt);
  EXPECT_TRUE(FileLock::acquire(path_));
  EXPECT_EQ(read_file(path_).value(), std::to_string(::getpid()) + "\n");
}

TEST_F(FileLockTest, RemovesItsFileAndIsThenFree) {
  FileLock lock = FileLock::acquire(path_).value();
  const FileDescriptor early = open_file(path_, O_RDWR).value();
  ASSERT_TRUE(lock.remove());
  EXPECT_FALSE(fs::exists(path_));
  // who had opened the deleted file does not keep the others out
  ASSERT_EQ(::flock(early.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(FileLock::acquire(path_));
}

TEST_F(FileLockTest, IsNotHeldByWhoLooksAtIt) {
  // a look holds it shared; the taker goes on as soon as the look ends
  ASSERT_TRUE(FileLock::acquire(path_));
  FileDescriptor look = open_file(path_, O_RDONLY).value();
  ASSERT_EQ(::flock(look.get(), LOCK_SH | LOCK_NB), 0);
  auto taker = std::async(std::launch::async, [&] { return FileLock::acquire(path_).has_value(); });
  look.reset();
  EXPECT_TRUE(taker.get());
}

TEST_F(FileLockTest, IsNotInheritedByPrograms) {
  const FileLock lock = FileLock::acquire(path_).value();
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) != fs::weakly_canonical(path_)) continue;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(FileLockTest, NamesAPathThatCannotBeLocked) {
  EXPECT_EQ(FileLock::acquire(folder_ / "none/lock").error().code(), Errc::not_found);
  EXPECT_THAT(FileLock::acquire(folder_.path()).error().message(), ::testing::HasSubstr(folder_.path()));
}

}  // namespace
}  // namespace troupe::base

#include "base/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/visible.h"

namespace troupe::base {
namespace {

using ::testing::HasSubstr;

struct FileLockTest : ::testing::Test {
  ScratchFolder folder;
  const std::string path = folder / "lock";
};

TEST_F(FileLockTest, ItNamesItsHolderAndIsFreeWithItsObject) {
  EXPECT_EQ(FileLock::holder(path), std::nullopt) << "no such file";
  {
    const auto lock = FileLock::acquire(path);
    ASSERT_TRUE(lock) << lock.error().message();
    EXPECT_EQ(text_of(path), std::to_string(::getpid()) + "\n");
    EXPECT_EQ(FileLock::holder(path), ::getpid());
    const auto second = FileLock::acquire(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Errc::failed_precondition);
    EXPECT_THAT(second.error().message(), HasSubstr("(pid " + std::to_string(::getpid()) + ")"));
  }
  EXPECT_EQ(FileLock::holder(path), std::nullopt);
  EXPECT_TRUE(FileLock::acquire(path));
}

TEST_F(FileLockTest, AKilledProcessLeavesItFree) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(path);
    const char byte = lock ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(FileLock::holder(path), child);
  EXPECT_FALSE(FileLock::acquire(path));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(FileLock::holder(path), std::nullopt);
  EXPECT_TRUE(FileLock::acquire(path));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockTest, AFolderThatIsMissingIsNamed) {
  const auto lock = FileLock::acquire(folder / "none/lock");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message(), HasSubstr("none/lock"));
}

}  // namespace
}  // namespace troupe::base

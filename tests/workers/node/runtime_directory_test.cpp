#include "workers/node/runtime_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

class RuntimeDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  fs::path base() const { return fs::path(folder_.path()) / "troupe"; }
  /// A process that takes the folder, puts a key there and is killed.
  void be_killed_with(const std::string& id) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto taken = RuntimeDirectory::take(id);
      if (!taken) ::_exit(1);
      std::ofstream(taken->path() + "/feed-server.json") << "secret" << std::flush;
      ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(fs::exists(base() / id / "feed-server.json"));
  }
  const ScratchFolder folder_;
};

TEST_F(RuntimeDirectoryTest, IsPrivateAndGoesWithItsOwner) {
  {
    const auto taken = RuntimeDirectory::take("run").value();
    EXPECT_EQ(taken.path(), base() / "run");
    struct stat info {};
    ASSERT_EQ(::stat(taken.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
  }
  EXPECT_TRUE(fs::is_empty(base()));
}

TEST_F(RuntimeDirectoryTest, WhatAKilledOwnerLeftIsRemovedByTheNextOfAnyName) {
  be_killed_with("killed");
  const auto next = RuntimeDirectory::take("next").value();
  EXPECT_FALSE(fs::exists(base() / "killed"));
  EXPECT_FALSE(fs::exists(base() / "killed.lock"));
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(RuntimeDirectoryTest, TheNextOfTheSameNameBeginsEmpty) {
  be_killed_with("run");
  const auto next = RuntimeDirectory::take("run").value();
  EXPECT_TRUE(fs::is_empty(next.path()));
}

TEST_F(RuntimeDirectoryTest, WhatALivingOwnerOrAStrangerHasStays) {
  const auto living = RuntimeDirectory::take("living").value();
  std::ofstream(living.path() + "/control") << "socket";
  fs::create_directories(base() / "strange");
  const auto next = RuntimeDirectory::take("next").value();
  EXPECT_TRUE(fs::exists(living.path() + "/control"));
  EXPECT_TRUE(fs::exists(base() / "strange")) << "no lock says whose it is";
  EXPECT_EQ(RuntimeDirectory::take("living").error().code(), Errc::failed_precondition);
}

TEST_F(RuntimeDirectoryTest, AFolderThatOthersMayEnterIsRefused) {
  fs::create_directories(base());
  fs::permissions(base(), fs::perms(0755));
  EXPECT_EQ(RuntimeDirectory::take("run").error().code(), Errc::failed_precondition);
}

}  // namespace
}  // namespace troupe::workers

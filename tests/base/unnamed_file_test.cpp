#include "base/unnamed_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;

TEST(UnnamedFileTest, HasItsBytesOnTheDiskAndNoName) {
  const ScratchFolder folder("/var/tmp");
  const auto file = make_unnamed_file(folder / "made/below", 100'000).value();
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(status.st_size, 100'000);
  EXPECT_EQ(status.st_nlink, 0u);
  EXPECT_GE(status.st_blocks * 512, 100'000) << "its blocks are reserved";
  EXPECT_TRUE(std::filesystem::is_empty(folder / "made/below"));
  char first = 'x';
  EXPECT_EQ(::pread(file.get(), &first, 1, 99'999), 1);
  EXPECT_EQ(first, 0);
}

TEST(UnnamedFileTest, ADiskWithoutRoomSaysSo) {
  const ScratchFolder folder("/var/tmp");
  const auto file = make_unnamed_file(folder.path(), std::int64_t{1} << 50);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("1125899906842624 bytes cannot be reserved"));
}

TEST(UnnamedFileTest, AFolderInMemoryIsRefused) {
  const ScratchFolder folder("/dev/shm");
  const auto file = make_unnamed_file(folder.path(), 10);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Errc::failed_precondition);
  EXPECT_THAT(file.error().message(), HasSubstr("lies in memory"));
}

TEST(UnnamedFileTest, AFolderThatCannotBeMadeIsNamed) {
  const auto file = make_unnamed_file("/proc/none", 10);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace troupe::base

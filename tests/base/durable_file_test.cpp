#include "base/durable_file.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DurableFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(DurableFileTest, AFileIsReplacedWholeAndNothingElseStays) {
  ASSERT_TRUE(write_file_durably(path("a"), std::string(100'000, 'x')));
  ASSERT_TRUE(write_file_durably(path("a"), std::string_view("a\0b", 3)));
  EXPECT_EQ(read("a"), std::string("a\0b", 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}
TEST_F(DurableFileTest, AFailedReplacementLeavesWhatWasThere) {
  ASSERT_TRUE(write_file_durably(path("a"), "before"));
  fs::create_directory(path("a.tmp"));  // stands where the new bytes would be written
  const auto failed = write_file_durably(path("a"), "after");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr(path("a.tmp")));
  EXPECT_EQ(read("a"), "before");
}
TEST_F(DurableFileTest, CommitGivesTheNameOrSaysWhyNot) {
  ASSERT_TRUE(write_file_synced(path("new"), "bytes"));
  ASSERT_TRUE(commit_file(path("new"), path("named")));
  EXPECT_EQ(read("named"), "bytes");
  EXPECT_FALSE(fs::exists(path("new")));
  const auto again = commit_file(path("new"), path("named"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::not_found);
  EXPECT_EQ(read("named"), "bytes");
}
TEST_F(DurableFileTest, FailuresNameThePathAndTheirKind) {
  const auto missing = write_file_durably(path("none/a"), "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Errc::not_found);
  EXPECT_THAT(missing.error().message(), HasSubstr(path("none/a.tmp") + ": cannot be created: No such file"));
  const auto full = write_file_synced("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Errc::resource_exhausted);
  EXPECT_THAT(full.error().message(), HasSubstr("/dev/full: cannot be written"));
  EXPECT_EQ(sync_directory(path("none")).error().code(), Errc::not_found);
  EXPECT_EQ(file_error("a", "fails", EIO).code(), Errc::unavailable);
}
TEST_F(DurableFileTest, ANameWithoutAFolderIsInTheWorkingDirectory) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  const auto written = write_file_durably("here", "x");
  fs::current_path(before);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(read("here"), "x");
}

}  // namespace
}  // namespace troupe::base

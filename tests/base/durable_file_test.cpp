#include "base/durable_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DurableFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const { return text_of(path(name)); }

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
  const std::string name(250, 'a');  // leaves no room for the temporary name
  ASSERT_TRUE(write_file_synced(path(name), "before"));
  EXPECT_THAT(write_file_durably(path(name), "after").error().message(),
              HasSubstr(path(name) + ": cannot be created: File name too long"));
  EXPECT_EQ(read(name), "before");
}
TEST_F(DurableFileTest, AFailedReplacementLeavesNoTemporaryFile) {
  fs::create_directory(path("a"));  // no file can take its name
  ASSERT_FALSE(write_file_durably(path("a"), "after"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}
TEST_F(DurableFileTest, ASecretIsPrivateWhateverStoodThere) {
  ASSERT_TRUE(write_file_durably(path("a"), "open"));
  ASSERT_TRUE(write_file_durably(path("a"), "secret", 0600));
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}
TEST_F(DurableFileTest, WritersOfOneFileDoNotDisturbEachOther) {
  const auto write = [&](char letter) {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(write_file_durably(path("a"), std::string(10'000, letter)));
  };
  std::thread other(write, 'x');
  write('y');
  other.join();
  const std::string text = read("a");
  EXPECT_EQ(text, std::string(10'000, text.at(0)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}
TEST_F(DurableFileTest, AFileThatSomebodyElseWroteIsSynced) {
  ASSERT_TRUE(write_file_synced(path("a"), "x"));
  EXPECT_TRUE(sync_file(path("a")));
  EXPECT_EQ(sync_file(path("none")).error().code(), Errc::not_found);
}
TEST_F(DurableFileTest, CommitGivesTheNameOrSaysWhyNot) {
  ASSERT_TRUE(write_file_synced(path("new"), "bytes"));
  ASSERT_TRUE(commit_file(path("new"), path("named")));
  EXPECT_EQ(read("named"), "bytes");
  EXPECT_FALSE(fs::exists(path("new")));
  EXPECT_EQ(commit_file(path("new"), path("named")).error().code(), Errc::not_found);
  EXPECT_EQ(read("named"), "bytes");
}
TEST_F(DurableFileTest, FailuresNameThePathAndTheirKind) {
  const auto missing = write_file_durably(path("none/a"), "x");
  EXPECT_EQ(missing.error().code(), Errc::not_found);
  EXPECT_THAT(missing.error().message(), HasSubstr(path("none/a") + ": cannot be created: No such file"));
  const auto full = write_file_synced("/dev/full", "x");
  EXPECT_EQ(full.error().code(), Errc::resource_exhausted);
  EXPECT_THAT(full.error().message(), HasSubstr("/dev/full: cannot be written"));
  EXPECT_EQ(sync_directory(path("none")).error().code(), Errc::not_found);
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

#include "base/new_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

namespace fs = std::filesystem;

class NewFolderTest : public ::testing::Test {
 protected:
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }
  static void put(const std::string& path) { std::ofstream(path) << "text"; }
  ScratchFolder folder_;
};

TEST_F(NewFolderTest, AppearsWholeWhenItIsPublished) {
  NewFolder made = NewFolder::begin(folder_ / "deep/er/data/").value();
  put(made.path() + "/file");
  EXPECT_FALSE(fs::exists(folder_ / "deep/er/data"));
  ASSERT_TRUE(made.publish());
  EXPECT_TRUE(fs::exists(folder_ / "deep/er/data/file"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "deep/er"), {}), 1);
}

TEST_F(NewFolderTest, IsGoneWhenItIsNotPublished) {
  { put(NewFolder::begin(folder_ / "data").value().path() + "/file"); }
  EXPECT_EQ(entries(), 0);
}

TEST_F(NewFolderTest, StaysWhereItsOwnerMoved) {
  NewFolder first = NewFolder::begin(folder_ / "data").value();
  const NewFolder second = std::move(first);
  EXPECT_TRUE(fs::is_directory(second.path()));
}

TEST_F(NewFolderTest, TakesAnEmptyFoldersPlaceButNoOthers) {
  fs::create_directory(folder_ / "empty");
  EXPECT_TRUE(NewFolder::begin(folder_ / "empty").value().publish());
  fs::create_directory(folder_ / "full");
  put(folder_ / "full/file");
  EXPECT_EQ(NewFolder::begin(folder_ / "full").error().code(), Errc::failed_precondition);
  put(folder_ / "file");
  EXPECT_FALSE(NewFolder::begin(folder_ / "file"));
}

TEST_F(NewFolderTest, WhoWasSlowerIsToldAndLeavesNothing) {
  NewFolder slow = NewFolder::begin(folder_ / "data").value();
  fs::create_directory(folder_ / "data");
  put(folder_ / "data/file");
  EXPECT_EQ(slow.publish().error().code(), Errc::failed_precondition);
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace troupe::base

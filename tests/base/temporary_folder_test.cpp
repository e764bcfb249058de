#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace troupe::base {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolderTest, IsNewEmptyAndGoesWithAllThatItHolds) {
  std::optional<TemporaryFolder> first(TemporaryFolder::make("troupe-unit").value());
  const auto second = TemporaryFolder::make("troupe-unit").value();
  const std::string path = first->path();
  EXPECT_NE(path, second.path());
  EXPECT_TRUE(fs::is_empty(path));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  std::ofstream(path + "/file") << "text";
  TemporaryFolder moved(std::move(*first));
  first.reset();
  EXPECT_TRUE(fs::exists(path + "/file")) << "it goes with the object that it was moved to";
  { const TemporaryFolder last(std::move(moved)); }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolderTest, WhereNoneCanBeMadeTheErrorNamesTmpdir) {
  const char* before = ::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", "/proc", 1);
  const auto made = TemporaryFolder::make("troupe-unit");
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::failed_precondition);
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("/proc/troupe-unit-"));
}

}  // namespace
}  // namespace troupe::base

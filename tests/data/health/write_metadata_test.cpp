#include "data/health/write_metadata.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

using Kind = MetadataOutcome::Kind;
namespace fs = std::filesystem;

class WriteMetadataTest : public ::testing::Test {
 protected:
  std::vector<Kind> write(const std::vector<MetaText>& files) {
    const auto outcomes = write_metadata(folder_.path(), files, "--out DIR").value();
    std::vector<Kind> kinds;
    for (const MetadataOutcome& o : outcomes) kinds.push_back(o.kind);
    return kinds;
  }
  std::string read(const std::string& name) const { return text_of(folder_ / name); }
  ScratchFolder folder_;
};

TEST_F(WriteMetadataTest, NewFilesAreWrittenAndEqualOnesLeft) {
  EXPECT_EQ(write({{"a.json", "1"}, {"b.json", "2"}}), (std::vector<Kind>{Kind::written, Kind::written}));
  EXPECT_EQ(write({{"a.json", "1"}, {"b.json", "2"}}), (std::vector<Kind>{Kind::unchanged, Kind::unchanged}));
  EXPECT_EQ(read("a.json"), "1");
}

TEST_F(WriteMetadataTest, FilesOfOthersAreKeptAndOwnOnesReplaced) {
  std::ofstream(folder_ / "theirs.json") << "precious";
  EXPECT_EQ(write({{"theirs.json", "new"}, {"ours.json", "1"}}), (std::vector<Kind>{Kind::kept, Kind::written}));
  EXPECT_EQ(read("theirs.json"), "precious");
  EXPECT_EQ(write({{"theirs.json", "new"}, {"ours.json", "2"}}), (std::vector<Kind>{Kind::kept, Kind::written}));
  EXPECT_EQ(read("ours.json"), "2");
  std::ofstream(folder_ / "ours.json") << "edited by hand";
  EXPECT_EQ(write({{"ours.json", "3"}}), (std::vector<Kind>{Kind::kept}));
  EXPECT_EQ(read("ours.json"), "edited by hand");
}

TEST_F(WriteMetadataTest, AWriteCutOffInBetweenIsTakenUpAgain) {
  ASSERT_EQ(write({{"a.json", "1"}}), (std::vector<Kind>{Kind::written}));
  // As after a crash between the ledger and the file, and after one between the file and the ledger.
  const std::string before = read("troupe_written.json");
  ASSERT_EQ(write({{"a.json", "2"}}), (std::vector<Kind>{Kind::written}));
  const std::string after = read("troupe_written.json");
  EXPECT_NE(before, after);
  std::ofstream(folder_ / "a.json") << "1";
  std::ofstream(folder_ / "troupe_written.json") << R"({"files": {"a.json": ["6d3d9cf9bd1b8b5c8e7bc9ec7b9d2d10"]}})";
  EXPECT_EQ(write({{"a.json", "2"}}), (std::vector<Kind>{Kind::kept})) << "a hash that is not the file's";
  std::ofstream(folder_ / "troupe_written.json") << before;
  EXPECT_EQ(write({{"a.json", "2"}}), (std::vector<Kind>{Kind::written}));
  EXPECT_EQ(read("a.json"), "2");
}

TEST_F(WriteMetadataTest, AFolderThatCannotBeMadeNamesTheOption) {
  std::ofstream(folder_ / "file") << "x";
  const auto refused = write_metadata(folder_ / "file/meta", std::vector<MetaText>{{"a.json", "1"}}, "--out DIR");
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("--out DIR"));
}

TEST_F(WriteMetadataTest, AReadOnlyFolderIsLeftAloneEvenByRoot) {
  fs::create_directory(folder_ / "meta");
  fs::permissions(folder_ / "meta", fs::perms::owner_read | fs::perms::owner_exec);
  const auto refused = write_metadata(folder_ / "meta", std::vector<MetaText>{{"a.json", "1"}}, "--out DIR");
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("read-only"));
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("--out DIR"));
  EXPECT_TRUE(fs::is_empty(folder_ / "meta"));
}

TEST_F(WriteMetadataTest, ADamagedLedgerIsNamed) {
  std::ofstream(folder_ / "troupe_written.json") << "{";
  const auto refused = write_metadata(folder_.path(), std::vector<MetaText>{{"a.json", "1"}}, "--out DIR");
  EXPECT_EQ(refused.error().code(), Errc::data_loss);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("troupe_written.json"));
}

}  // namespace
}  // namespace troupe::data

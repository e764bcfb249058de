#include "workers/data/lerobot/parquet_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/fault.h"
#include "tests/support/tiny_dataset.h"

namespace troupe {
namespace {

const TableColumns kBoth = {.vectors = {"observation.state", "action"},
                            .integers = {"task_index"},
                            .optional_vectors = {},
                            .optional_integers = {}};

Error error_of(const std::string& path, const TableColumns& columns) {
  const auto table = read_parquet(path, columns);
  return table ? Error{Errc::internal, "read without an error"} : table.error();
}

TEST(ParquetTableTest, ListsOfBothWidthsAndFormsGiveTheSameRows) {
  for (bool fixed : {false, true}) {
    for (bool float64 : {false, true}) {
      TinyEpisode episode;
      episode.fixed_size_lists = fixed;
      episode.float64 = float64;
      const TinyDataset set({episode});
      const auto table = read_parquet(set.parquet(0), kBoth);
      ASSERT_TRUE(table) << table.error().message();
      EXPECT_EQ(table->rows, 40);
      const VectorColumn& state = table->vectors.at("observation.state");
      EXPECT_EQ(state.width, 3u);
      for (std::int64_t r = 0; r < 40; ++r) {
        for (std::int64_t d = 0; d < 3; ++d) EXPECT_EQ(state.row(r)[static_cast<std::size_t>(d)], episode.state(r, d));
      }
      EXPECT_EQ(table->integers.at("task_index"), std::vector<std::int64_t>(40, 0));
    }
  }
}

TEST(ParquetTableTest, FactsComeFromTheFooter) {
  const TinyDataset set;
  const auto facts = read_parquet_facts(set.parquet(0));
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->rows, 40);
  EXPECT_EQ(facts->row_groups, 6);
  EXPECT_EQ(facts->columns.size(), 7u);
}

TEST(ParquetTableTest, AMissingColumnIsNamedWithThoseThereAre) {
  const TinyDataset set;
  const Error e = error_of(set.parquet(0),
                           {.vectors = {"joints"}, .integers = {}, .optional_vectors = {}, .optional_integers = {}});
  EXPECT_EQ(e.code(), Errc::invalid_argument);
  EXPECT_NE(e.message().find(set.parquet(0) + " has no column 'joints'; it has observation.state, action"),
            std::string::npos)
      << e.message();
}

TEST(ParquetTableTest, OptionalColumnsMayBeAbsentOrOfAnotherKind) {
  const TinyDataset set;
  const auto table = read_parquet(set.parquet(0), {.vectors = {},
                                                   .integers = {},
                                                   .optional_vectors = {"timestamp", "joints"},
                                                   .optional_integers = {"index", "timestamp", "nothing"}});
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ(table->vectors.count("timestamp"), 1u);
  EXPECT_EQ(table->vectors.size(), 1u);
  EXPECT_EQ(table->integers.size(), 1u);
}

TEST(ParquetTableTest, NanIsRefusedWithItsRow) {
  TinyEpisode episode;
  episode.action = [](std::int64_t r, std::int64_t d) {
    return r == 11 && d == 2 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  };
  const TinyDataset set({episode});
  const Error e = error_of(set.parquet(0), kBoth);
  EXPECT_EQ(e.code(), Errc::invalid_argument);
  EXPECT_NE(e.message().find("column 'action' holds nan in row 11"), std::string::npos) << e.message();
}

TEST(ParquetTableTest, AVectorIsNoInteger) {
  const TinyDataset set;
  const Error e = error_of(set.parquet(0),
                           {.vectors = {}, .integers = {"action"}, .optional_vectors = {}, .optional_integers = {}});
  EXPECT_EQ(e.code(), Errc::invalid_argument);
  EXPECT_NE(e.message().find("'action'"), std::string::npos) << e.message();
}

TEST(ParquetTableTest, DamagedFilesAreDataLossAndNamed) {
  const TinyDataset set;
  const std::string path = set.parquet(0);
  const auto size = std::filesystem::file_size(path);
  for (const std::uintmax_t keep : {size - 1, size / 2, std::uintmax_t{12}, std::uintmax_t{1}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, keep);
    const Error e = error_of(path, kBoth);
    EXPECT_EQ(e.code(), Errc::data_loss) << keep;
    EXPECT_NE(e.message().find(path), std::string::npos) << e.message();
  }
}

TEST(ParquetTableTest, FlippedBytesNeverCrash) {
  const TinyDataset set;
  std::ifstream in(set.parquet(0), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 37) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5A);
    std::ofstream(set.parquet(1), std::ios::binary) << bad;
    if (!read_parquet(set.parquet(1), kBoth)) ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST(ParquetTableTest, AFaultPointReadsAsAnUnreadableFile) {
  const TinyDataset set;
  ASSERT_TRUE(arm_faults("parquet@episode_000001:fail"));
  EXPECT_TRUE(read_parquet(set.parquet(0), kBoth));
  const Error e = error_of(set.parquet(1), kBoth);
  ASSERT_TRUE(arm_faults(""));
  EXPECT_EQ(e.code(), Errc::data_loss);
  EXPECT_NE(e.message().find(set.parquet(1)), std::string::npos);
}

}  // namespace
}  // namespace troupe

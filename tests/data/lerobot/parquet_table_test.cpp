#include "data/lerobot/parquet_table.h"

#include <gmock/gmock.h>

#include <array>
#include <limits>
#include <thread>

#include "base/fault.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
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
      const TinyEpisode episode{.fixed_size_lists = fixed, .float64 = float64};
      const TinyDataset set({episode});
      const auto table = read_parquet(set.parquet(0), kBoth);
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

TEST(ParquetTableTest, HalfPrecisionIsReadAsTheNumbersItStandsFor) {
  constexpr std::array<std::uint16_t, 3> kBits = {0x3C00, 0xC100, 0x0001};  // 1, -2.5, the smallest
  arrow::HalfFloatBuilder halves;
  ASSERT_TRUE(halves.AppendValues(kBits.data(), kBits.size()).ok());
  const auto column = halves.Finish().ValueOrDie();
  const auto table = arrow::Table::Make(arrow::schema({arrow::field("action", column->type())}), {column});
  const ScratchFolder folder;
  const std::string path = folder / "halves.parquet";
  auto out = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 3).ok() && out->Close().ok());
  const auto read =
      read_parquet(path, {.vectors = {"action"}, .integers = {}, .optional_vectors = {}, .optional_integers = {}});
  ASSERT_TRUE(read) << read.error().message();
  const VectorColumn& action = read->vectors.at("action");
  EXPECT_EQ(action.row(0)[0], 1);
  EXPECT_EQ(action.row(1)[0], -2.5);
  EXPECT_FLOAT_EQ(static_cast<float>(action.row(2)[0]), 5.9604645e-8F);
}

TEST(ParquetTableTest, FactsComeFromTheFooter) {
  const TinyDataset set;
  const auto facts = read_parquet_facts(set.parquet(0));
  EXPECT_EQ(facts->rows, 40);
  EXPECT_EQ(facts->row_groups, 6);
  EXPECT_EQ(facts->columns.size(), 7u);
}

TEST(ParquetTableTest, AMissingColumnIsNamedWithThoseThereAre) {
  const TinyDataset set;
  const Error e = error_of(set.parquet(0),
                           {.vectors = {"joints"}, .integers = {}, .optional_vectors = {}, .optional_integers = {}});
  EXPECT_EQ(e.code(), Errc::invalid_argument);
  EXPECT_THAT(e.message(),
              ::testing::HasSubstr(set.parquet(0) + " has no column 'joints'; it has observation.state, action"));
}

TEST(ParquetTableTest, OptionalColumnsMayBeAbsentOrOfAnotherKind) {
  const TinyDataset set;
  const auto table = read_parquet(set.parquet(0), {.vectors = {},
                                                   .integers = {},
                                                   .optional_vectors = {"timestamp", "joints"},
                                                   .optional_integers = {"index", "timestamp", "nothing"}});
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
  EXPECT_THAT(e.message(), ::testing::HasSubstr("column 'action' holds nan in row 11"));
}

TEST(ParquetTableTest, AVectorIsNoInteger) {
  const TinyDataset set;
  const Error e = error_of(set.parquet(0),
                           {.vectors = {}, .integers = {"action"}, .optional_vectors = {}, .optional_integers = {}});
  EXPECT_EQ(e.code(), Errc::invalid_argument);
  EXPECT_THAT(e.message(), ::testing::HasSubstr("'action'"));
}

TEST(ParquetTableTest, DamagedFilesAreDataLossAndNamed) {
  const TinyDataset set;
  const std::string path = set.parquet(0);
  const auto size = std::filesystem::file_size(path);
  for (const std::uintmax_t keep : {size - 1, size / 2, std::uintmax_t{12}, std::uintmax_t{1}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, keep);
    const Error e = error_of(path, kBoth);
    EXPECT_EQ(e.code(), Errc::data_loss) << keep;
    EXPECT_THAT(e.message(), ::testing::HasSubstr(path));
  }
}

TEST(ParquetTableTest, FlippedBytesNeverCrash) {
  const TinyDataset set;
  const std::string good = text_of(set.parquet(0));
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 37) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5A);
    std::ofstream(set.parquet(1), std::ios::binary) << bad;
    if (!read_parquet(set.parquet(1), kBoth)) ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST(ParquetTableTest, ARangeReadsThoseRowsWhateverTheRowGroups) {
  const TinyDataset set;  // groups of 7 rows
  const auto whole = read_parquet(set.parquet(0), kBoth);
  ParquetFiles files;
  for (const RowRange range : {RowRange{0, 40}, {0, 1}, {6, 2}, {7, 7}, {13, 20}, {39, 1}, {40, 0}, {12, -1}}) {
    const std::int64_t count = range.count < 0 ? 40 - range.first : range.count;
    for (const auto& part : {read_parquet(set.parquet(0), kBoth, range), files.read(set.parquet(0), kBoth, range)}) {
      EXPECT_EQ(part->rows, count);
      ASSERT_EQ(part->vectors.at("action").values.size(), static_cast<std::size_t>(3 * count));
      for (std::int64_t r = 0; r < count; ++r) {
        EXPECT_EQ(part->vectors.at("action").row(r)[2], whole->vectors.at("action").row(range.first + r)[2]);
      }
    }
  }
}

TEST(ParquetTableTest, ARangePastTheEndIsRefused) {
  const TinyDataset set;
  for (const RowRange range : {RowRange{0, 41}, {41, -1}, {-1, 2}, {40, 1}, {INT64_MAX, 2}}) {
    const auto table = read_parquet(set.parquet(0), kBoth, range);
    ASSERT_FALSE(table) << range.first;
    EXPECT_EQ(table.error().code(), Errc::invalid_argument);
    EXPECT_THAT(table.error().message(), ::testing::HasSubstr(set.parquet(0) + " has 40 rows"));
  }
}

TEST(ParquetTableTest, CachesStayWithinTheirLimits) {
  const TinyDataset set;
  ParquetFiles files(2, 600);  // a group of 7 rows has some 100 bytes a column
  for (int round = 0; round < 3; ++round) {
    for (std::size_t e = 0; e < 3; ++e) {
      for (std::int64_t r = 0; r < 40; r += 3) {
        const auto table = files.read(set.parquet(e), kBoth, {r, 1});
        EXPECT_EQ(table->vectors.at("observation.state").row(0)[1], 0.25 * static_cast<double>(r) + 1);
      }
    }
  }
  EXPECT_EQ(files.counters().opened, 9) << "three files in two places, in turn";
}

TEST(ParquetTableTest, ThreadsShareOneCache) {
  const TinyDataset set;
  ParquetFiles files(1, 400);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t row = (i * 7 + static_cast<std::int64_t>(t)) % 40;
        const auto table = files.read(set.parquet((t + static_cast<std::size_t>(i)) % 3), kBoth, {row, 1});
        EXPECT_EQ(table->vectors.at("action").row(0)[0], 0.25 * static_cast<double>(row + 1));
      }
    });
  }
}

/// A table of images.
class ImageCellsTest : public ::testing::Test {
 protected:
  static testing::LerobotSet images() {
    testing::LerobotSet set;
    set.images = true;
    set.rows = {5, 4, 6};
    set.data_episodes = 3;
    set.row_group_per_episode = true;
    set.edit_image = [](std::size_t e, std::int64_t row, std::size_t camera, std::string& png) {
      png = std::to_string(e) + "/" + std::to_string(row) + "/" + std::to_string(camera);
    };
    return set;
  }
  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  testing::LerobotFolder folder_{images()};
  std::string file_ = folder_.data_file(0);
};

TEST_F(ImageCellsTest, RowsComeInTheOrderAskedFor) {
  const std::vector<std::int64_t> rows = {14, 0, 5, 5, 8, 1};
  const std::vector<std::string> want = {"2/5/1", "0/0/1", "1/0/1", "1/0/1", "1/3/1", "0/1/1"};
  ParquetFiles files;
  for (const auto& cells : {read_image_cells(file_, "observation.images.right", rows),
                            files.read_images(file_, "observation.images.right", rows)}) {
    std::vector<std::string> got;
    for (const auto& cell : *cells) got.push_back(text(cell));
    EXPECT_EQ(got, want);
  }
  EXPECT_TRUE(read_image_cells(file_, "observation.images.right", {})->empty());
}

TEST_F(ImageCellsTest, ARangeVisitsEveryRowOnce) {
  std::string got;
  const auto add = [&](std::int64_t row, auto bytes) {
    got += std::to_string(row) + "=" + text(bytes) + " ";
    return Result<void>();
  };
  visit_image_cells(file_, "observation.images.left", {3, 4}, add).value();
  EXPECT_EQ(got, "3=0/3/0 4=0/4/0 5=1/0/0 6=1/1/0 ");
}

TEST_F(ImageCellsTest, TheSinksErrorEndsTheRead) {
  int calls = 0;
  const auto visited = visit_image_cells(file_, "observation.images.left", {}, [&](std::int64_t, auto) -> Result<void> {
    ++calls;
    return Error{Errc::cancelled, "enough"};
  });
  EXPECT_EQ(visited.error().code(), Errc::cancelled);
  EXPECT_EQ(calls, 1);
}

TEST_F(ImageCellsTest, RefusalsNameFileColumnAndRow) {
  const auto number = read_image_cells(file_, "action", std::vector<std::int64_t>{0});
  EXPECT_THAT(number.error().message(), ::testing::HasSubstr("column 'action' has type list"));
  EXPECT_FALSE(read_image_cells(file_, "nothing", std::vector<std::int64_t>{0}));
  const auto beyond = read_image_cells(file_, "observation.images.left", std::vector<std::int64_t>{0, 15});
  EXPECT_THAT(beyond.error().message(), ::testing::HasSubstr("has 15 rows"));
}

TEST_F(ImageCellsTest, PlainBinaryIsAnImageToo) {
  arrow::BinaryBuilder cells;
  testing::LerobotFolder::check(cells.AppendValues(std::vector<std::string>{"one", "two"}));
  testing::LerobotFolder::check(cells.AppendNull());
  testing::LerobotFolder::Columns columns;
  columns.add("image", cells);
  const std::string path = folder_.root() + "/plain.parquet";
  testing::LerobotFolder::write_table(path, columns, {3});
  const auto two = read_image_cells(path, "image", std::vector<std::int64_t>{1});
  EXPECT_EQ(text(two->at(0)), "two");
  const auto null = read_image_cells(path, "image", std::vector<std::int64_t>{2});
  EXPECT_THAT(null.error().message(), ::testing::HasSubstr("column 'image' holds no image in row 2"));
}

TEST(ParquetTableTest, AFaultPointReadsAsAnUnreadableFile) {
  const TinyDataset set;
  ASSERT_TRUE(arm_faults("parquet@episode_000001:fail"));
  EXPECT_TRUE(read_parquet(set.parquet(0), kBoth));
  const Error e = error_of(set.parquet(1), kBoth);
  ASSERT_TRUE(arm_faults(""));
  EXPECT_EQ(e.code(), Errc::data_loss);
  EXPECT_THAT(e.message(), ::testing::HasSubstr(set.parquet(1)));
}

}  // namespace
}  // namespace troupe::data

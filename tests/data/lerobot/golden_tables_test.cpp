#include <gtest/gtest.h>

#include <set>

#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"
#include "data/lerobot/parquet_table.h"
#include "data/statistics/state_action.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

TEST(GoldenListTest, EveryKindInTheFolderIsKnown) {
  const char* named = std::getenv("TROUPE_GOLDEN");
  EXPECT_TRUE(named == nullptr || *named == 0 || std::filesystem::is_directory(named))
      << "TROUPE_GOLDEN names " << named << ", which is no folder";
  const std::set<std::string> tested = {"tables", "statistics", "sampling", "normalisation", "language"};
  const std::set<std::string> by_video_tests = {"decode", "image"};
  const std::set<std::string> by_convert_tests = {"lerobot"};
  const auto cases = golden_cases("data");
  for (const GoldenCase& c : cases) {
    const std::string kind = c.file.stem();
    EXPECT_NE(c.kind, "unreadable") << c.file << " is no JSON object";
    EXPECT_TRUE(tested.count(kind) + by_video_tests.count(kind) + by_convert_tests.count(kind) == 1 ||
                kind.starts_with("batch_"))
        << "no test reads kind " << kind;
  }
  ASSERT_FALSE(cases.empty()) << "no golden case of data in " << golden_roots_text();
}

class GoldenTablesTest : public ::testing::Test {
 protected:
  /// Makes the dataset of a case the one that the checks below read.
  void open(const std::string& root) {
    auto set = LerobotDataset::open(root);
    set_ = std::move(*set);
  }

  static std::vector<std::int64_t> all_rows(std::int64_t rows) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i);
    return out;
  }

  void check_slice(const EpisodeTable& table, const VectorKey& key, const Json& want) {
    SCOPED_TRACE(key.name);
    EXPECT_EQ(key.column, want["source_column"].get<std::string>());
    EXPECT_EQ(key.start, want["start"].get<std::int64_t>());
    EXPECT_EQ(key.end, want["end"].get<std::int64_t>());
    const auto rows = all_rows(table.rows);
    EXPECT_EQ(xxh64_of(gather_rows<double>(table, key, rows)), want["xxh64_bytes_f64"].get<std::string>());
    EXPECT_EQ(xxh64_of(gather_rows<float>(table, key, rows)), want["xxh64_bytes_f32"].get<std::string>());
  }

  void check_scalar(const EpisodeTable& table, const std::string& name, const Json& want) {
    SCOPED_TRACE(name);
    const std::string dtype = want["dtype"];
    if (dtype == "float64") {
      EXPECT_EQ(xxh64_of(table.vectors.at(name).values), want["xxh64_bytes"].get<std::string>());
    } else if (dtype == "int64") {
      EXPECT_EQ(xxh64_of(table.integers.at(name)), want["xxh64_bytes"].get<std::string>());
    } else {
      ASSERT_EQ(dtype, "bool");
      std::vector<std::uint8_t> bytes(table.integers.at(name).begin(), table.integers.at(name).end());
      EXPECT_EQ(xxh64_of(bytes), want["xxh64_bytes"].get<std::string>());
    }
  }

  void check_episode_table(const Json& want) {
    const auto place = set_.find(want["episode_index"]);
    ASSERT_TRUE(place);
    const std::string path = set_.rows(*place)->path;
    SCOPED_TRACE(path);
    const auto facts = read_parquet_facts(path);
    EXPECT_EQ(facts->rows, want["rows"].get<std::int64_t>());
    EXPECT_EQ(facts->row_groups, want["row_groups"].get<std::int64_t>());
    EXPECT_EQ(facts->compression, want["compression"].get<std::string>());
    EXPECT_EQ(facts->uncompressed_bytes, want["total_uncompressed_bytes"].get<std::int64_t>());
    Json columns;
    for (const auto& [name, type] : facts->columns) columns[name] = type;
    EXPECT_EQ(columns, want["columns"]);

    TableColumns asked;
    for (const auto& [name, value] : want["vectors"].items()) asked.vectors.push_back(name);
    for (const auto& [name, value] : want["scalars"].items()) {
      (value["dtype"] == "float64" ? asked.vectors : asked.integers).push_back(name);
    }
    const auto table = read_parquet(path, asked);
    for (const auto& [name, value] : want["vectors"].items()) {
      EXPECT_EQ(xxh64_of(table->vectors.at(name).values), value["xxh64_bytes"].get<std::string>()) << name;
      EXPECT_EQ(table->vectors.at(name).width, value["shape"][1].get<std::size_t>());
    }
    for (const auto& [name, value] : want["scalars"].items()) check_scalar(*table, name, value);

    const auto modality = read_modality(set_.root(), set_.info());
    std::size_t slices = 0;
    for (const VectorKey& key : modality->state)
      check_slice(*table, key, want["slices"]["state." + key.name]), ++slices;
    for (const VectorKey& key : modality->action)
      check_slice(*table, key, want["slices"]["action." + key.name]), ++slices;
    EXPECT_EQ(slices, want["slices"].size());
    check_annotations(*table, *modality, want);
  }

  void check_annotations(const EpisodeTable& table, const Modality& modality, const Json& want) {
    for (const auto& [column, value] : want["annotations"].items()) {
      const auto has = [&, name = column](const NamedColumn& a) { return a.column == name; };
      EXPECT_TRUE(std::any_of(modality.annotation.begin(), modality.annotation.end(), has)) << column;
      const auto& labels = table.integers.at(value["source_column"]);
      EXPECT_EQ(labels[0], value["first_index"].get<std::int64_t>());
      EXPECT_EQ(set_.tasks().at(labels[0]), value["first_text"].get<std::string>());
      const std::set<std::int64_t> distinct(labels.begin(), labels.end());
      EXPECT_EQ(std::vector<std::int64_t>(distinct.begin(), distinct.end()),
                value["distinct"].get<std::vector<std::int64_t>>());
    }
    const EpisodeRecord& record = set_.episodes().at(*set_.find(want["episode_index"]));
    EXPECT_EQ(record.length, want["episodes_jsonl"]["length"].get<std::int64_t>());
    EXPECT_EQ(record.tasks, want["episodes_jsonl"]["tasks"].get<std::vector<std::string>>());
    EXPECT_EQ(record.length == table.rows, want["rows_equal_length"].get<bool>());
  }

  LerobotDataset set_;
};

TEST_F(GoldenTablesTest, ColumnsSlicesAndTextsAreExact) {
  int opened = 0;
  for (const GoldenCase& c : golden_data_cases("tables")) {
    SCOPED_TRACE(c.file.string());
    const Json file = parse_golden(c);
    EXPECT_TRUE(has_any_part(file, {"files_bytes", "episodes"})) << "nothing to compare";
    DatasetTraits traits;
    for (const Json& episode : part_of(file, "episodes")) {
      for (const auto& [name, value] : part_of(episode, "vectors").items()) traits.columns[name] = value["shape"][1];
    }
    const std::string root = dataset_of(c, traits);
    if (root.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(open(root));
    ++opened;
    for (const auto& [name, bytes] : part_of(file, "files_bytes").items()) {
      EXPECT_EQ(std::filesystem::file_size(root + "/" + name), bytes.get<std::uintmax_t>());
    }
    for (const Json& episode : part_of(file, "episodes")) check_episode_table(episode);
  }
  if (opened == 0) GTEST_SKIP() << "no golden case of kind tables whose dataset is here in " << golden_roots_text();
}

}  // namespace
}  // namespace troupe::data

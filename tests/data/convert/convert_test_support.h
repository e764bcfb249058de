#pragma once

#include <arrow/table.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "data/convert/convert_dataset.h"
#include "data/convert/dataset_source.h"
#include "data/convert/frame_reader.h"
#include "data/convert/json_columns.h"
#include "data/convert/packet_copy.h"
#include "data/convert/table_rows.h"
#include "data/toy/toy_dataset.h"
#include "tests/data/shared_data.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {

namespace fs = std::filesystem;

inline void write_text(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline nlohmann::ordered_json json_of(const std::string& path) { return nlohmann::ordered_json::parse(text_of(path)); }

/// Statistics of episodes as LeRobot wrote them before it had quantiles.
inline void take_quantiles(const std::string& dataset) {
  const std::string path = dataset + "/meta/episodes_stats.jsonl";
  std::istringstream lines(text_of(path));
  std::string line, bare;
  while (std::getline(lines, line)) {
    auto json = nlohmann::ordered_json::parse(line);
    for (auto& [name, values] : json["stats"].items()) {
      for (const char* q : {"q01", "q10", "q50", "q90", "q99"}) values.erase(q);
    }
    bare += json.dump() + "\n";
  }
  write_text(path, bare);
}

inline std::vector<std::string> names_of(const std::map<std::string, std::string>& tree) {
  std::vector<std::string> out;
  for (const auto& [name, bytes] : tree) out.push_back(name);
  return out;
}

/// All rows of a Parquet file.
inline std::shared_ptr<arrow::Table> table_of(const std::string& path) {
  const auto file = open_parquet(path);
  return RowReader().read(path, 0, (*file)->parquet_reader()->metadata()->num_rows()).value();
}

inline ConvertDatasetRequest request_for(const std::string& source, const std::string& out,
                                         DatasetVersion to = DatasetVersion::v30) {
  ConvertDatasetRequest request;
  request.sources = {source};
  request.out = out;
  request.to = to;
  request.jobs = 2;
  return request;
}

inline ConvertDatasetReport converted(const ConvertDatasetRequest& request) {
  auto report = convert_dataset(request).value();
  for (const std::string& failure : report.verify_failures) ADD_FAILURE() << failure;
  return report;
}

/// Cameras of make_toy().
inline constexpr const char* kFront = "observation.images.front";
inline constexpr const char* kSide = "observation.images.side";

/// A generated dataset of three short episodes.
inline void make_toy(const std::string& dir, std::int64_t episodes = 3, std::int64_t frames = 24,
                     std::uint64_t seed = 5, std::int64_t side = 32) {
  write_toy_dataset(
      dir, {.episodes = episodes, .frames = frames, .fps = 10, .height = side, .width = side, .gop = 6, .seed = seed})
      .value();
}

/// Two JSON documents whatever the order of keys, 20 and 20.0 being equal.
inline bool same_json(const std::string& a, const std::string& b) {
  return nlohmann::json::parse(a) == nlohmann::json::parse(b);
}

/// Hashes of the decoded frames of a whole file.
inline std::vector<std::uint64_t> frame_hashes(const std::string& path) {
  std::vector<std::uint64_t> out;
  const auto table = video_packets(path);
  auto reader = FrameReader::open(path, *table, 0, static_cast<std::int64_t>((*table)->decode_of_rank.size()));
  while (true) {
    const auto frame = reader->next();
    if (*frame == nullptr) break;
    out.push_back(frame_hash(**frame));
  }
  return out;
}

/// What a v2.x dataset says, file by file: tables equal by value, type and metadata, videos by packets and frames,
/// lines
/// and documents of metadata as JSON.
inline void expect_same_v2(const std::string& got, const std::string& want) {
  const auto a = files_below(got), b = files_below(want);
  for (const auto& [name, bytes] : b) {
    SCOPED_TRACE(name);
    ASSERT_EQ(a.count(name), 1U) << "is missing";
    if (name.ends_with(".parquet")) {
      const auto x = table_of(got + "/" + name), y = table_of(want + "/" + name);
      EXPECT_TRUE(x->schema()->Equals(*y->schema(), false)) << x->schema()->ToString();
      EXPECT_TRUE(x->Equals(*y, false));
    } else if (name.ends_with(".mp4")) {
      const auto x = video_packets(got + "/" + name), y = video_packets(want + "/" + name);
      ASSERT_EQ((*x)->samples.size(), (*y)->samples.size());
      for (std::size_t i = 0; i < (*x)->samples.size(); ++i) {
        EXPECT_EQ((*x)->samples[i].size, (*y)->samples[i].size);
        EXPECT_EQ((*x)->samples[i].rank, (*y)->samples[i].rank);
        EXPECT_EQ((*x)->samples[i].key, (*y)->samples[i].key);
      }
      EXPECT_EQ(frame_hashes(got + "/" + name), frame_hashes(want + "/" + name));
    } else if (name.ends_with(".jsonl")) {
      std::istringstream x(a.at(name)), y(bytes);
      std::string p, q;
      while (std::getline(y, q)) {
        ASSERT_TRUE(std::getline(x, p));
        EXPECT_TRUE(same_json(p, q)) << p << "\n" << q;
      }
      EXPECT_FALSE(std::getline(x, p)) << p;
    } else if (name.ends_with(".json")) {
      EXPECT_TRUE(same_json(a.at(name), bytes)) << a.at(name);
    } else {
      EXPECT_EQ(a.at(name), bytes);
    }
  }
  // what has been v3.0 comes back with that version's statistics of the whole dataset
  for (const auto& [name, bytes] : a)
    EXPECT_TRUE(b.count(name) == 1 || name.starts_with(".troupe/") || name == "meta/stats.json") << name << " is new";
}

}  // namespace troupe::testing

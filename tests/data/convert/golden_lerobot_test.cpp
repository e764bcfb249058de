// Golden kind `lerobot`: every v30 variant, converted from the folder's v21 form with the variant's limits, against
// what LeRobot's own converter wrote.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "base/hash.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_meta.h"
#include "tests/data/convert/convert_test_support.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {
namespace {

using Json = nlohmann::ordered_json;

struct Variant {
  std::string name, suffix;  ///< the suffix is that of the case's name (GoldenCase)
  fs::path folder;           ///< of the golden data
  Json json;
  friend std::ostream& operator<<(std::ostream& out, const Variant& v) { return out << v.name << v.suffix; }
};

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const GoldenCase& c : golden_cases("data")) {
    if (c.file.stem() != "lerobot") continue;
    const Json json = Json::parse(text_of(c.file.string()), nullptr, false);
    if (!json.is_object() || !json.contains("v30")) continue;
    const std::string suffix = c.name.substr(c.file.stem().string().size());
    for (const auto& [name, variant] : json["v30"].items()) out.push_back({name, suffix, c.folder, variant});
  }
  return out;
}

/// Folder `videos` for a v2 dataset that lacks its own: that of the recorded dataset which has a file for every camera
/// and episode that `v21` lists. Empty where no recorded dataset has them.
std::string videos_for(const fs::path& v21) {
  const auto info = read_lerobot_info(v21.string());
  if (!info) return {};
  const auto episodes = read_episodes(v21.string(), *info);
  if (!episodes) return {};
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(shared_data(), absent)) {
    bool complete = fs::is_directory(entry.path() / "videos");
    for (const LerobotFeature& camera : info->features) {
      if (!camera.is_video()) continue;
      for (const EpisodeRecord& episode : *episodes) {
        const auto path =
            fill_path_template(info->video_path, PathFields::of_episode(*info, episode.index, camera.name));
        complete = complete && path && fs::exists(entry.path() / *path);
      }
    }
    if (complete) return (entry.path() / "videos").string();
  }
  return {};
}

double leaf(const Json& value) { return value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>(); }

/// Equal structure, numbers to 1e-9 relative to max(1, abs): the order of a sum may differ.
void expect_near(const Json& got, const Json& want, const std::string& where) {
  if (want.is_array() || want.is_object()) {
    ASSERT_EQ(got.size(), want.size()) << where;
    for (const auto& [key, value] : want.items()) {
      const bool there = want.is_object() ? got.contains(key) : true;
      ASSERT_TRUE(there) << where << " lacks " << key;
      expect_near(want.is_object() ? got.at(key) : got.at(std::stoul(key)), value, where + "/" + key);
    }
  } else if (want.is_number() || want.is_boolean()) {
    ASSERT_TRUE(got.is_number() || got.is_boolean()) << where << ": " << got;
    EXPECT_NEAR(leaf(got), leaf(want), 1e-9 * std::max(1.0, std::abs(leaf(want)))) << where;
  } else {
    EXPECT_EQ(got, want) << where;
  }
}

/// Rows of a table as JSON objects.
std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> out;
  const auto table = table_of(path);
  for (std::int64_t r = 0; table && r < table->num_rows(); ++r) {
    Json row = Json::object();
    for (int c = 0; c < table->num_columns(); ++c)
      row[table->field(c)->name()] = json_value(*table->column(c)->chunk(0), r);
    out.push_back(std::move(row));
  }
  return out;
}

template <class T>
std::string digest(const std::vector<T>& values) {
  return to_hex(xxh64(std::as_bytes(std::span(values))));
}

class GoldenLerobotTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const fs::path v21 = GetParam().folder / "lerobot/v21";
    ASSERT_TRUE(fs::exists(v21)) << "the case has no " << v21;
    if (!fs::exists(shared_data())) GTEST_SKIP() << "no shared data at " << shared_data();
    const std::string videos = videos_for(v21);
    ASSERT_FALSE(videos.empty()) << "no dataset of " << shared_data() << " has the videos of " << v21;
    fs::copy(v21, scratch_ / "v21", fs::copy_options::recursive);
    fs::create_directory_symlink(fs::absolute(videos), scratch_ / "v21/videos");
    auto request = request_for(scratch_ / "v21", out_);
    const Json& options = GetParam().json.at("options");
    request.data_file_mb = options.at("data_file_size_in_mb");
    request.video_file_mb = options.at("video_file_size_in_mb");
    request.compression = "snappy";
    request.row_group = 1'000'000;
    converted(request);
    golden_ = (GetParam().folder / ("lerobot/v30_" + GetParam().name)).string();
    // a variant whose data/file_index names other files than were written shows a defect of its writer
    faithful_ = GetParam().json.value("data_file_index_matches_files", true);
  }

  static std::string episodes_path(const std::string& root) {
    return root + "/meta/episodes/chunk-000/file-000.parquet";
  }

  bool check_episodes() const {
    const Json& json = GetParam().json;
    if (!json.contains("episodes")) return false;
    const auto rows = rows_of(episodes_path(out_));
    EXPECT_EQ(rows.size(), json["episodes"].size());
    for (std::size_t e = 0; e < std::min(rows.size(), json["episodes"].size()); ++e) {
      for (const auto& [name, value] : json["episodes"][e].items()) {
        if (!faithful_ && name.starts_with("data/")) continue;
        EXPECT_TRUE(rows[e].contains(name)) << name;
        if (rows[e].contains(name)) expect_near(rows[e][name], value, "episode " + std::to_string(e) + " " + name);
      }
    }
    return true;
  }

  bool check_column_types() const {
    const Json& json = GetParam().json;
    if (!json.contains("episodes_columns")) return false;
    const auto table = table_of(episodes_path(out_));
    std::vector<std::string> got, want;
    for (const auto& field : table->schema()->fields()) got.push_back(field->name() + ": " + field->type()->ToString());
    for (const auto& [name, type] : json["episodes_columns"].items())
      want.push_back(name + ": " + type.get<std::string>());
    EXPECT_EQ(got, want);
    return true;
  }

  bool check_data_files() const {
    const Json& json = GetParam().json;
    if (!json.contains("data_files")) return false;
    std::map<std::int64_t, std::string> file_of;  // first row -> our file
    for (const Json& row : rows_of(episodes_path(out_))) {
      const auto path = fmt::format("data/chunk-{:03d}/file-{:03d}.parquet", row["data/chunk_index"].get<int>(),
                                    row["data/file_index"].get<int>());
      const bool known = std::any_of(file_of.begin(), file_of.end(), [&](const auto& f) { return f.second == path; });
      if (!known) file_of[row["dataset_from_index"]] = path;
    }
    EXPECT_EQ(file_of.size(), json["data_files"].size());
    for (const auto& [name, facts] : json["data_files"].items()) {
      SCOPED_TRACE(name);
      const auto found = file_of.find(facts.value("first_index", std::int64_t{0}));
      if (found == file_of.end()) {
        ADD_FAILURE() << "no file begins at its first row";
        continue;
      }
      if (faithful_) {
        EXPECT_EQ(found->second, name);
      }
      check_data_file(out_ + "/" + found->second, facts);
    }
    return true;
  }

  /// Compares with a fact where the golden file has it.
  static void expect_fact(const Json& facts, const char* name, const Json& got) {
    if (facts.contains(name)) {
      EXPECT_EQ(got, facts[name]) << name;
    }
  }

  static void check_data_file(const std::string& path, const Json& facts) {
    const auto table = table_of(path);
    expect_fact(facts, "rows", table->num_rows());
    if (facts.contains("columns") && facts["columns"].is_array()) {
      EXPECT_EQ(Json(table->schema()->field_names()), facts["columns"]);
    }
    if (facts.contains("episodes")) {
      const auto numbers = number_column(*table->GetColumnByName("episode_index")).values;
      Json episodes = Json::array();
      for (const double v : numbers) {
        if (episodes.empty() || episodes.back() != static_cast<std::int64_t>(v))
          episodes.push_back(static_cast<std::int64_t>(v));
      }
      EXPECT_EQ(episodes, facts["episodes"]);
    }
    if (facts.contains("state_xxh64")) {
      EXPECT_EQ(digest(number_column(*table->GetColumnByName("observation.state")).values), facts["state_xxh64"]);
    }
    if (facts.contains("action_xxh64")) {
      EXPECT_EQ(digest(number_column(*table->GetColumnByName("action")).values), facts["action_xxh64"]);
    }
    expect_fact(facts, "row_groups", (*open_parquet(path))->parquet_reader()->metadata()->num_row_groups());
  }

  /// [pts, dts, key, size] of every packet, in units of the stream.
  static std::vector<std::array<std::int64_t, 4>> packets_of(const std::string& path) {
    std::vector<std::array<std::int64_t, 4>> out;
    AVFormatContext* raw = nullptr;
    EXPECT_GE(avformat_open_input(&raw, path.c_str(), nullptr, nullptr), 0) << path;
    const AvInput input(raw);
    const AvPacket packet(av_packet_alloc());
    while (raw != nullptr && av_read_frame(raw, packet.get()) >= 0) {
      out.push_back({packet->pts, packet->dts, packet->flags & AV_PKT_FLAG_KEY, packet->size});
      av_packet_unref(packet.get());
    }
    return out;
  }

  /// Bytes of the H.264 parameter sets of the header (avcC), each behind a length or start code of four bytes.
  static std::int32_t parameter_set_bytes(const PacketTable& table) {
    const std::span<const std::uint8_t> bytes(table.codec->extradata,
                                              static_cast<std::size_t>(table.codec->extradata_size));
    if (table.codec->codec_id != AV_CODEC_ID_H264 || bytes.size() < 7 || bytes[0] != 1) return 0;
    std::int32_t sum = 0;
    std::size_t at = 5;
    for (const int mask : {0x1f, 0xff}) {  // sequence sets, then picture sets
      if (at >= bytes.size()) return sum;
      const int count = bytes[at++] & mask;
      for (int i = 0; i < count && at + 2 <= bytes.size(); ++i) {
        const int size = bytes[at] << 8 | bytes[at + 1];
        sum += 4 + size;
        at += 2 + static_cast<std::size_t>(size);
      }
    }
    return sum;
  }

  bool check_video_files() const {
    const Json& json = GetParam().json;
    if (!json.contains("video_files")) return false;
    for (const auto& file : json["video_files"].items()) {
      const std::string& name = file.key();
      const Json& facts = file.value();
      SCOPED_TRACE(name);
      const std::string path = out_ + "/" + name;
      const auto table = video_packets(path);
      if (!table) {
        ADD_FAILURE() << table.error().message();
        continue;
      }
      const auto packets = packets_of(path);
      std::vector<std::int32_t> sizes;
      std::vector<std::int64_t> keys, pts;
      for (const auto& p : packets) sizes.push_back(static_cast<std::int32_t>(p[3])), pts.push_back(p[0]);
      std::sort(pts.begin(), pts.end());
      for (const VideoSample& s : (*table)->samples) {
        if (s.key) keys.push_back(s.rank);
      }
      std::sort(keys.begin(), keys.end());
      expect_fact(facts, "frames", pts.size());
      expect_fact(facts, "first_pts", pts.front());
      expect_fact(facts, "last_pts", pts.back());
      expect_fact(facts, "pts_all_multiples_of_512",
                  std::all_of(pts.begin(), pts.end(), [](auto t) { return t % 512 == 0; }));
      expect_fact(facts, "key_frames_presentation", keys);
      // FFmpeg's concat demuxer puts the parameter sets into every key frame, beside those of the header; a plain copy
      // has the source's sizes
      auto in_band = sizes;
      for (std::size_t i = 0; i < packets.size(); ++i) {
        if (packets[i][2] != 0) in_band[i] += parameter_set_bytes(**table);
      }
      if (facts.contains("packet_sizes_xxh64_i32")) {
        EXPECT_TRUE(digest(in_band) == facts["packet_sizes_xxh64_i32"] ||
                    digest(sizes) == facts["packet_sizes_xxh64_i32"])
            << "parameter sets have " << parameter_set_bytes(**table) << " bytes";
      }
      if (facts.contains("first_three_packets")) {
        for (std::size_t i = 0; i < facts["first_three_packets"].size(); ++i) {
          const Json& want = facts["first_three_packets"][i];  // [pts, dts, key, size]; dts is the writer's choice
          EXPECT_EQ(packets[i][0], want[0]);
          EXPECT_LE(packets[i][1], packets[i][0]);
          EXPECT_EQ(packets[i][2], want[2]);
          EXPECT_TRUE(want[3] == sizes[i] || want[3] == in_band[i]) << want[3] << " " << sizes[i];
        }
      }
      if (facts.value("decoded_frames_equal_concatenated_episodes", false) && facts.contains("episodes"))
        check_frames(path, fs::path(name).parent_path().parent_path().filename(), facts["episodes"]);
    }
    return true;
  }

  /// A file of v3 has the frames of its episodes, one after the other.
  void check_frames(const std::string& path, const std::string& camera, const Json& episodes) const {
    const std::string source = scratch_ / "v21";
    const auto info = read_lerobot_info(source);
    std::vector<std::uint64_t> want;
    for (const Json& e : episodes) {
      const auto name =
          fill_path_template(info->video_path, PathFields::of_episode(*info, e.get<std::int64_t>(), camera));
      const auto own = frame_hashes(source + "/" + *name);
      want.insert(want.end(), own.begin(), own.end());
    }
    EXPECT_EQ(frame_hashes(path), want);
  }

  bool check_info() const {
    if (!fs::exists(golden_ + "/meta/info.json")) return false;
    const Json got = json_of(out_ + "/meta/info.json"), want = json_of(golden_ + "/meta/info.json");
    for (const auto& [key, value] : want.items()) {
      EXPECT_TRUE(got.contains(key)) << key;
      if (got.contains(key)) {
        EXPECT_TRUE(same_json(got[key].dump(), value.dump())) << key << ": " << got[key];
      }
    }
    EXPECT_TRUE(got["fps"].is_number_integer());
    return true;
  }

  bool check_metadata_tables() const {
    bool any = false;
    if (fs::exists(golden_ + "/meta/stats.json")) {
      Json got = json_of(out_ + "/meta/stats.json");
      const Json want = json_of(golden_ + "/meta/stats.json");
      // LeRobot states quantiles only where its source has some; ours are of the tables
      for (const auto& [name, values] : want.items()) {
        for (const char* q : {"q01", "q99"}) {
          if (values.contains(q) || !got[name].contains(q)) continue;
          EXPECT_EQ(got[name][q].size(), values["min"].size()) << name;
          got[name].erase(q);
        }
      }
      expect_near(got, want, "stats.json");
      any = true;
    }
    if (fs::exists(golden_ + "/meta/tasks.parquet")) {
      const auto got = table_of(out_ + "/meta/tasks.parquet"), want = table_of(golden_ + "/meta/tasks.parquet");
      EXPECT_EQ(got->num_rows(), want->num_rows());
      // 0.4.4 left the text column without a name
      for (int c = 0; c < want->num_columns(); ++c) {
        EXPECT_TRUE(got->column(c)->Equals(*want->column(c))) << c;
        if (want->field(c)->name().rfind("__", 0) != 0) {
          EXPECT_EQ(got->field(c)->name(), want->field(c)->name());
        }
      }
      any = true;
    }
    if (fs::exists(episodes_path(golden_))) {
      const auto got = table_of(episodes_path(out_)), want = table_of(episodes_path(golden_));
      EXPECT_TRUE(got->schema()->Equals(*want->schema(), false)) << got->schema()->ToString();
      const auto x = rows_of(episodes_path(out_)), y = rows_of(episodes_path(golden_));
      for (std::size_t e = 0; e < y.size(); ++e) expect_near(x.at(e), y[e], "episode " + std::to_string(e));
      any = true;
    }
    if (fs::exists(golden_ + "/data")) {
      for (const auto& entry : fs::recursive_directory_iterator(golden_ + "/data")) {
        if (!entry.is_regular_file()) continue;
        const auto name = entry.path().lexically_relative(golden_).string();
        const auto got = table_of(out_ + "/" + name), want = table_of(golden_ + "/" + name);
        EXPECT_TRUE(got->schema()->Equals(*want->schema(), false)) << got->schema()->ToString();
        EXPECT_TRUE(got->Equals(*want, false)) << name;
        any = true;
      }
    }
    return any;
  }

  ScratchFolder scratch_;
  const std::string out_ = scratch_ / "v30";
  std::string golden_;
  bool faithful_ = true;
};

TEST_P(GoldenLerobotTest, ConversionEqualsLeRobots) {
  int compared = 0;
  compared += check_episodes();
  compared += check_column_types();
  compared += check_data_files();
  compared += check_video_files();
  compared += check_info();
  compared += check_metadata_tables();
  EXPECT_GT(compared, 0) << "the variant has nothing that this test compares";
  EXPECT_EQ(text_of(out_ + "/meta/modality.json"), text_of(scratch_ / "v21/meta/modality.json"));
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenLerobotTest, ::testing::ValuesIn(variants()), [](const auto& tested) {
  std::string name = tested.param.name + tested.param.suffix;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLerobotTest);

TEST(GoldenLerobotListTest, AFileOfTheKindHasVariants) {
  auto cases = golden_cases("data");
  std::erase_if(cases, [](const GoldenCase& c) { return c.file.stem() != "lerobot"; });
  if (cases.empty()) GTEST_SKIP() << "no golden case of kind lerobot in " << golden_roots_text();
  for (const GoldenCase& c : cases)
    EXPECT_FALSE(c.json.value("v30", nlohmann::json()).empty()) << c.file << " has no variant to compare with";
}

}  // namespace
}  // namespace troupe::data

// Damaged datasets: whatever is changed in a small dataset, opening it either refuses, naming a file, or says so in a
// warning, or delivers exactly the samples of the sound one. So does converting it and opening the result. Nothing
// crashes, hangs or changes in silence. A seeded choice is tried; TROUPE_ALL_MUTANTS=1 tries all of them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/hash.h"
#include "data/convert/convert_dataset.h"
#include "data/health/health_check.h"
#include "data/health/report_json.h"
#include "data/sample/sample_builder.h"
#include "data/video/video_encoder.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/parquet_edit.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using Doc = nlohmann::ordered_json;

/// A change of one file.
struct Mutant {
  std::string file;  ///< relative to the dataset
  std::string what;
  std::function<void(const std::string& path)> change;
};

constexpr std::size_t kMutantsPerVersion = 200;
constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n";

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Frames whose grey tells episode, row and camera apart.
void write_real_video(const std::string& path, const std::vector<LerobotSet::Clip>& clips) {
  auto encoder = VideoEncoder::open(path, {.width = 32, .height = 32, .fps = 10, .gop = 4});
  for (const LerobotSet::Clip& clip : clips) {
    for (std::int64_t r = 0; r < clip.rows; ++r) {
      const auto grey =
          static_cast<std::uint8_t>(40 * clip.episode + 5 * static_cast<std::size_t>(r) + 20 * clip.camera);
      const std::vector<std::uint8_t> rgb(3 * 32 * 32, grey);
      (*encoder)->write({rgb.data(), 32, 32, 96}).value();
    }
  }
  (*encoder)->finish().value();
}

/// The mutants of one dataset, in an order that its seed decides.
class Mutants {
 public:
  Mutants(std::string root, std::uint64_t seed) : root_(std::move(root)), random_(seed) {
    for (const auto& [name, bytes] : testing::files_below(root_)) {
      add_file(name, bytes.size());
      if (name.ends_with(".json") || name.ends_with(".jsonl"))
        add(name, "lists without end", [](const std::string& p) { write_bytes(p, std::string(300'000, '[')); });
      if (name.ends_with(".json")) add_json(name, bytes, 0);
      if (name.ends_with(".jsonl")) add_lines(name, bytes);
      if (name.ends_with(".parquet")) add_table(name, bytes.size());
    }
    std::shuffle(all_.begin(), all_.end(), random_);
  }
  const std::vector<Mutant>& all() const { return all_; }

 private:
  void add(const std::string& file, std::string what, std::function<void(const std::string&)> change) {
    all_.push_back({file, std::move(what), std::move(change)});
  }

  void add_file(const std::string& name, std::size_t size) {
    add(name, "removed", [](const std::string& p) { fs::remove(p); });
    add(name, "emptied", [](const std::string& p) { write_bytes(p, ""); });
    add(name, "cut to a half", [size](const std::string& p) { fs::resize_file(p, size / 2); });
    add(name, "a Git LFS pointer", [](const std::string& p) { write_bytes(p, kPointer); });
    add(name, "a folder", [](const std::string& p) {
      fs::remove(p);
      fs::create_directory(p);
    });
  }

  /// `line`: 0, or the line of a JSON-lines file. Numbers of modality.json and texts of tasks are the user's choice:
  /// another valid one makes other samples, as it should.
  void add_json(const std::string& name, const std::string& text, std::size_t line) {
    const Doc doc = Doc::parse(text);
    const bool chosen = name.ends_with("modality.json");
    const Doc leaves = doc.flatten();
    for (const auto& [pointer, leaf] : leaves.items()) {
      const Doc::json_pointer at(pointer);
      const auto edit = [this, line](const Doc& before, const Doc::json_pointer& place, const Doc& value) {
        Doc after = before;
        after[place] = value;
        return [after, line](const std::string& p) { write_line(p, line, after.dump()); };
      };
      add(name, pointer + " = null", edit(doc, at, nullptr));
      add(name, pointer + " = []", edit(doc, at, Doc::array()));
      if (leaf.is_number() && is_estimate(name, doc, at)) continue;
      if (leaf.is_number()) {
        add(name, pointer + " = text", edit(doc, at, leaf.dump()));
        add(name, pointer + " = -1", edit(doc, at, -1));
        if (!chosen) add(name, pointer + " * 2", edit(doc, at, leaf.get<double>() * 2));
        if (!chosen) add(name, pointer + " / 2", edit(doc, at, leaf.get<double>() / 2));
        add(name, pointer + " = 1e30", edit(doc, at, 1e30));
      } else if (leaf.is_string()) {
        add(name, pointer + " = 7", edit(doc, at, 7));
        if (pointer.find("task") == pointer.npos)
          add(name, pointer + " + x", edit(doc, at, leaf.get<std::string>() + "x"));
      }
      add_erased(name, doc, at, line);
    }
    if (!chosen) add_structures(name, doc, Doc::json_pointer(), line);
  }

  void add_erased(const std::string& name, const Doc& doc, const Doc::json_pointer& at, std::size_t line) {
    Doc without = doc;
    Doc& parent = without[at.parent_pointer()];
    if (!parent.is_object()) return;
    parent.erase(at.back());
    add(name, at.to_string() + " erased",
        [without, line](const std::string& p) { write_line(p, line, without.dump()); });
  }

  /// Whole features, shapes and lists of statistics: gone, empty or of another kind.
  void add_structures(const std::string& name, const Doc& doc, const Doc::json_pointer& at, std::size_t line) {
    for (const auto& [key, value] : doc[at].items()) {
      if (!value.is_structured()) continue;
      const Doc::json_pointer place = doc[at].is_array() ? at / std::stoul(key) : at / key;
      add_erased(name, doc, place, line);
      for (const Doc& other : {Doc(nullptr), Doc::object(), Doc::array(), Doc("x")}) {
        Doc after = doc;
        after[place] = other;
        add(name, place.to_string() + " = " + other.dump(),
            [after, line](const std::string& p) { write_line(p, line, after.dump()); });
      }
      add_structures(name, doc, place, line);
    }
  }

  /// q01 and q99 may be off by a tenth of the range: only what is further away is told.
  static bool is_estimate(const std::string& name, const Doc& doc, const Doc::json_pointer& at) {
    const auto list = at.parent_pointer();
    if (!name.ends_with("stats.json") || list.back().front() != 'q') return false;
    const Doc& all = doc[list.parent_pointer()];
    const std::size_t d = std::stoul(at.back());
    const double range = all["max"][d].get<double>() - all["min"][d].get<double>();
    return std::abs(doc[at].get<double>()) <= 0.1 * range + 1;
  }

  static void write_line(const std::string& path, std::size_t line, const std::string& text) {
    if (line == 0) return write_bytes(path, text);
    std::istringstream in(testing::text_of(path));
    std::string out, each;
    for (std::size_t n = 1; std::getline(in, each); ++n) out += (n == line ? text : each) + "\n";
    write_bytes(path, out);
  }

  void add_lines(const std::string& name, const std::string& text) {
    std::istringstream in(text);
    std::string each;
    for (std::size_t n = 1; std::getline(in, each); ++n) {
      add_json(name, each, n);
      add(name, "line twice", [n, each](const std::string& p) { write_line(p, n, each + "\n" + each); });
      add(name, "line gone", [n](const std::string& p) { write_line(p, n, ""); });
      add(name, "line is no JSON", [n](const std::string& p) { write_line(p, n, "{\"a\": "); });
    }
  }

  void add_table(const std::string& name, std::size_t size) {
    const auto schema = testing::read_whole_table(root_ + "/" + name)->schema();
    const bool data = name.starts_with("data/");
    for (const auto& field : schema->fields()) {
      const std::string column = field->name();
      add(name, column + " null", [column](const std::string& p) { testing::set_null(p, column, 1); });
      add(name, column + " gone", [column](const std::string& p) {
        const auto table = testing::read_whole_table(p);
        testing::write_whole_table(p, *testing::must(table->RemoveColumn(table->schema()->GetFieldIndex(column))));
      });
      if (field->type()->id() == arrow::Type::INT64) {
        add(name, column + " texts", [column](const std::string& p) { testing::set_texts(p, column); });
        for (const std::int64_t wrong : {-1, 3, 99}) {
          // another label that exists is another valid dataset
          if (column == "task_index" && data && wrong != 99) continue;
          add(name, column + " = " + std::to_string(wrong),
              [column, wrong](const std::string& p) { testing::set_integer(p, column, 1, wrong); });
        }
      }
    }
    // pages have checksums; what is around them has not
    for (int i = 0; i < 24; ++i) {
      const std::size_t at = random_() % size;
      const auto bit = static_cast<char>(1 << (random_() % 8));
      add(name, "bit of byte " + std::to_string(at), [at, bit](const std::string& p) {
        std::string bytes = testing::text_of(p);
        bytes[at] = static_cast<char>(bytes[at] ^ bit);
        write_bytes(p, bytes);
      });
    }
  }

  std::string root_;
  std::mt19937_64 random_;
  std::vector<Mutant> all_;
};

class MutantsTest : public ::testing::TestWithParam<const char*> {
 protected:
  MutantsTest()
      : files_(LerobotSet{.version = GetParam(),
                          .rows = {12, 10, 11},
                          .height = 32,
                          .width = 32,
                          .write_video = write_real_video,
                          .data_episodes = 3,
                          .video_episodes = 3}) {
    for (const auto& [name, bytes] : testing::files_below(files_.root())) {
      if (!name.ends_with(".parquet")) continue;
      const std::string path = files_.root() + "/" + name;
      testing::write_whole_table(path, *testing::read_whole_table(path), /*checksums=*/true);
    }
    files_.write_text("meta/modality.json",
                      R"({"state": {"state": {"start": 0, "end": 3}}, "action": {"action": {"start": 0, "end": 3}},)"
                      R"("video": {"left": {"original_key": "observation.images.left"},)"
                      R"("right": {"original_key": "observation.images.right"}},)"
                      R"("annotation": {"task": {"original_key": "task_index"}}})");
    job_.data.sets = {{files_.root(), 1.0}};
    job_.data.embodiment.layout = "horizontal";
    job_.data.embodiment.prompt = "none";
    job_.data.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
    job_.data.image.height = job_.data.image.width = 8;
    job_.data.index.build = "never";
    job_.model.dit.action_dim = 4;
    job_.model.dit.max_state_dim = 4;
    job_.model.text_encoder.max_length = 8;
  }

  HealthReport health() const {
    HealthOptions options;
    options.data = files_.root();
    options.window = job_.data.window;
    options.horizon = 4;
    options.threads = 1;
    options.index.path = "/nonexistent";
    return check_health(options).value();
  }

  /// All samples of the dataset as it is now.
  Result<std::string> deliver() const { return deliver(files_.root()); }
  Result<std::string> deliver(const std::string& root) const {
    JobConfig job = job_;
    job.data.sets[0].path = root;
    TROUPE_ASSIGN(const auto set, Dataset::open(job.data, job.model, {.probe = {}, .threads = 1}));
    const auto tokenize = [](const std::string& prompt, std::span<std::int64_t> ids, std::span<std::int64_t> mask) {
      for (std::size_t i = 0; i < std::min(prompt.size(), ids.size()); ++i) ids[i] = prompt[i], mask[i] = 1;
      return Result<void>();
    };
    TROUPE_ASSIGN(SampleBuilder builder, SampleBuilder::make(Mixture::of(set, job.data), job, tokenize));
    Xxh3Stream hash;
    std::vector<std::byte> slot(static_cast<std::size_t>(builder.layout().bytes));
    for (std::int64_t q = 0; q < static_cast<std::int64_t>(set->train().size()); ++q) {
      TROUPE_TRY(builder.build(Split::train, q, slot));
      hash.update(slot);
    }
    return hash.hex();
  }

  /// Converts the dataset as it is now to the other version. Returns what was said that names a file of it.
  Result<std::vector<std::string>> convert() const {
    std::filesystem::remove_all(converted_);
    ConvertDatasetRequest request;
    request.sources = {files_.root()};
    request.out = converted_;
    request.to = files_.set().is_v3() ? DatasetVersion::v21 : DatasetVersion::v30;
    request.jobs = 1;
    TROUPE_ASSIGN(const ConvertDatasetReport report, convert_dataset(request));
    std::vector<std::string> said = report.notes;
    for (const DatasetProblem& p : report.left_out) said.push_back(p.text);
    std::erase_if(said, [&](const std::string& text) { return text.find(files_.root()) == text.npos; });
    return said;
  }

  /// Of the mutant at hand. `sound`: the samples of the sound dataset's conversion.
  std::string outcome_of_conversion(const std::string& sound) const {
    const auto said = convert();
    if (!said) {
      EXPECT_NE(said.error().message().find(files_.root()), std::string::npos) << said.error().message();
      EXPECT_TRUE(said.error().code() == Errc::data_loss || said.error().code() == Errc::not_found)
          << said.error().to_string();
      return "refused";
    }
    if (!said->empty()) return "told";
    const auto now = deliver(converted_);
    EXPECT_TRUE(now) << "the result cannot be read: " << now.error().message();
    EXPECT_TRUE(!now || *now == sound) << "the converted dataset has other samples, and no note says why";
    return "harmless";
  }

  LerobotFolder files_;
  ScratchFolder scratch_;
  const std::string converted_ = scratch_ / "converted";
  JobConfig job_;
};

TEST_P(MutantsTest, AreRefusedOrToldOrHarmless) {
  files_.write_text("meta/stats.json", stats_json(health(), false));
  const auto sound = deliver();
  ASSERT_TRUE(sound) << sound.error().message();
  ASSERT_TRUE(convert().value().empty());
  const auto sound_conversion = deliver(converted_);
  ASSERT_TRUE(sound_conversion) << sound_conversion.error().message();
  EXPECT_EQ(*sound_conversion, *sound);
  for (const HealthFinding& f : health().findings) ASSERT_EQ(f.level, FindingLevel::note) << f.text;
  const Mutants mutants(files_.root(), 7);
  ASSERT_GE(mutants.all().size(), kMutantsPerVersion);
  const std::size_t count = std::getenv("TROUPE_ALL_MUTANTS") != nullptr ? mutants.all().size() : kMutantsPerVersion;
  std::map<std::string, int> outcomes;
  for (std::size_t i = 0; i < count; ++i) {
    const Mutant& m = mutants.all()[i];
    SCOPED_TRACE(m.file + ": " + m.what);
    const std::string path = files_.root() + "/" + m.file, before = testing::text_of(path);
    m.change(path);
    const HealthReport report = health();
    std::string findings;
    bool told = false;
    for (const HealthFinding& f : report.findings) {
      findings += f.code + " " + f.text + "\n";
      told = told || (f.level != FindingLevel::note && f.text.find(files_.root()) != std::string::npos);
    }
    const auto now = deliver();
    if (!now) {
      EXPECT_NE(now.error().message().find(files_.root()), std::string::npos) << now.error().message();
      EXPECT_TRUE(told) << "only training says: " << now.error().message();
      ++outcomes["refused"];
    } else if (*now == *sound) {
      ++outcomes["harmless"];
    } else {
      EXPECT_TRUE(told) << "other samples, and nobody says why; findings:\n" << findings;
      ++outcomes["told"];
    }
    ++outcomes["conversion " + outcome_of_conversion(*sound_conversion)];
    fs::remove_all(path);
    write_bytes(path, before);
  }
  EXPECT_EQ(deliver().value(), *sound) << "every change was taken back";
  EXPECT_GT(outcomes["refused"], 30);
  EXPECT_GT(outcomes["harmless"], 10);
  EXPECT_GT(outcomes["conversion refused"], 30);
  EXPECT_GT(outcomes["conversion harmless"], 10);
  for (const auto& [outcome, number] : outcomes) std::cout << GetParam() << ": " << outcome << " " << number << "\n";
}

INSTANTIATE_TEST_SUITE_P(Versions, MutantsTest, ::testing::Values("v2.0", "v2.1", "v3.0"), [](const auto& given) {
  const std::string version = given.param;
  return "V" + version.substr(1, 1) + version.substr(3, 1);
});

}  // namespace
}  // namespace troupe::data

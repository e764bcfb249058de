// Feeds damaged files to the readers of datasets: info.json, episodes.jsonl, tasks.jsonl, modality.json, the slices of
// an embodiment YAML, v3.0's tables of episodes and tasks, tables of rows and images, and coded images. Valid files
// are changed by a generator with a fixed seed, so that a finding repeats: fuzz_metadata SECONDS [SEED].
// An input must be read, or refused with an error that names the file; everything else, a crash or memory out of
// proportion above all, is a finding. The time is a budget, not a judge.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/still_image.h"
#include "tests/support/byte_changes.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"

namespace {

using namespace troupe::testing;  // NOLINT: a program of its own
using Random = FuzzRandom;

/// What the whole run may have in memory at one time; the readers' own limit is 256 MiB a file.
constexpr long kMostResidentKiB = 2L << 20;

/// Words and numbers that steer a parser off its path.
const std::vector<std::string>& dictionary() {
  static const std::vector<std::string> words = {"PAR1",
                                                 "\"v3.0\"",
                                                 "\"v2.1\"",
                                                 "codebase_version",
                                                 "{episode_index:06d}",
                                                 "{video_key}",
                                                 "{chunk_index:99d}",
                                                 "{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "null",
                                                 "true",
                                                 "-1",
                                                 "1e308",
                                                 "-0.0",
                                                 "9223372036854775807",
                                                 "1e999",
                                                 "\\u0000",
                                                 "\xff\xfe",
                                                 "\"shape\":[",
                                                 "\"features\":{",
                                                 "../",
                                                 "/etc/",
                                                 "episode_index",
                                                 "task_index",
                                                 "length",
                                                 "\n",
                                                 "[[[[[[[[[[[[[[[[",
                                                 "original_key",
                                                 "start",
                                                 "end",
                                                 ":",
                                                 "\x15",
                                                 "\x19",
                                                 "\x4c",
                                                 "\x2c",
                                                 std::string(8, '\0'),
                                                 "\xff\xff\xff\xff\x0f",
                                                 "\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                                 "\x80\x80\x80\x80\x08"};
  return words;
}

void change_once(Random& random, std::string& bytes, const std::string& other) {
  if (below(random, 8) != 0) return change_bytes(random, bytes, dictionary());
  if (below(random, 8) == 0) return bytes.resize(below(random, bytes.size() + 1));
  splice_bytes(random, bytes, other);
}

/// Parquet's footer stands at the end, and everything depends on it: half of the changes go there, and its length and
/// magic are mended, so that damage gets past the first look.
void change_parquet(Random& random, std::string& bytes) {
  if (bytes.size() < 12) return;
  std::uint32_t footer = 0;
  std::memcpy(&footer, bytes.data() + bytes.size() - 8, 4);
  const std::size_t begin = bytes.size() - 8 - std::min<std::size_t>(footer, bytes.size() - 12);
  std::string head = bytes.substr(0, begin), tail = bytes.substr(begin, bytes.size() - 8 - begin);
  std::string& part = below(random, 2) == 0 ? tail : head;
  const std::string whole = part;
  for (std::size_t n = 1 + below(random, 3); n-- > 0;) change_once(random, part, whole);
  const auto length = static_cast<std::uint32_t>(tail.size());
  bytes = head + tail + std::string(reinterpret_cast<const char*>(&length), 4) + "PAR1";
}

/// One dataset on disk, of which one file is replaced at a time.
struct Target {
  LerobotFolder folder;
  std::string name;  ///< of the file
  std::string bytes = text_of(folder.root() + "/" + name);
  void put(const std::string& text) const { std::ofstream(folder.root() + "/" + name, std::ios::binary) << text; }
};

LerobotSet small(const std::string& version, bool images) {
  return {.version = version, .rows = {6, 4, 5}, .height = 4, .width = 4, .images = images};
}

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random_(seed) {
    const auto add = [&](const char* version, bool images, const char* name) {
      targets_.push_back(std::unique_ptr<Target>(new Target{LerobotFolder(small(version, images)), name}));
    };
    for (const char* version : {"v2.1", "v3.0"}) add(version, false, "meta/info.json");
    for (const char* name : {"meta/episodes.jsonl", "meta/tasks.jsonl"}) add("v2.1", false, name);
    for (const char* name :
         {"meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet", "data/chunk-000/file-000.parquet"})
      add("v3.0", false, name);
    add("v3.0", true, "data/chunk-000/file-000.parquet");
    targets_.push_back(std::unique_ptr<Target>(new Target{LerobotFolder(with_modality()), "meta/info.json"}));
    Target& modality = *targets_.back();
    modality.name = "meta/modality.json";
    modality.bytes = R"({"state": {"arm": {"start": 0, "end": 2, "original_key": "observation.state"}},)"
                     R"( "action": {"arm": {"start": 0, "end": 2}},)"
                     R"("video": {"left": {"original_key": "observation.images.left"}},)"
                     R"( "annotation": {"text": {"original_key": "task_index"}}})";
    modality.put(modality.bytes);
    cell_ = png_bytes(5, 4, PngColor::rgb, 8, std::string(60, 'p'));
  }

  /// The files as they are must be read: a seed that is refused tests nothing.
  void check_seeds() {
    for (const auto& target : targets_) read(*target);
    cell(cell_);
    slice("action[0:2]");
    if (refused_ != 0) throw std::runtime_error("a seed was refused");
  }

  void step() {
    const std::size_t kind = below(random_, targets_.size() + 2);
    if (kind == targets_.size()) return cell(changed(cell_));
    if (kind > targets_.size()) return slice(changed("observation.state[0:12]"));
    const Target& target = *targets_[kind];
    std::string bytes = target.bytes;
    if (target.name.find(".parquet") != target.name.npos && below(random_, 8) != 0) {
      change_parquet(random_, bytes);
    } else {
      bytes = changed(bytes);
    }
    target.put(bytes);
    read(target);
    target.put(target.bytes);
  }

  std::int64_t read_count() const { return read_; }
  std::int64_t refused() const { return refused_; }
  std::uint64_t touched() const { return touched_; }

 private:
  static LerobotSet with_modality() { return small("v2.0", false); }

  std::string changed(std::string bytes) {
    const std::string whole = bytes;
    for (std::size_t n = 1 + below(random_, 4); n-- > 0;) change_once(random_, bytes, whole);
    return bytes;
  }

  void judge(const Error& error, const std::string& name) {
    ++refused_;
    if (error.message().find(name) != std::string::npos) return;
    throw std::runtime_error(fmt::format("an error that does not name {}: {}", name, error.message()));
  }

  void cell(const std::string& bytes) {
    const auto image = decoder_.decode(std::as_bytes(std::span(bytes.data(), bytes.size())), "cell", image_);
    if (!image) return judge(image.error(), "cell");
    ++read_;
    for (const std::uint8_t v : image_.rgb) touched_ += v;
  }

  void slice(const std::string& text) {
    const auto parsed = parse_column_slice(text);
    if (parsed && (parsed->column.empty() || parsed->start < 0))
      throw std::runtime_error("an impossible slice: " + text);
    parsed ? ++read_ : ++refused_;
  }

  /// Everything that opening and reading does, as far as the damage lets it.
  void read(const Target& target) {
    const std::string& root = target.folder.root();
    const auto set = LerobotDataset::open(root);
    if (!set) return judge(set.error(), root);
    const auto modality = read_modality(root, set->info());
    if (!modality) return judge(modality.error(), root);
    const auto columns = resolve_columns(*modality, set->info(), EmbodimentConfig{});
    TableColumns wanted{.vectors = {"observation.state", "action"},
                        .integers = {"task_index", "index"},
                        .optional_vectors = {},
                        .optional_integers = {}};
    if (columns) wanted.vectors = columns->vector_columns();
    bool whole = true;
    for (std::size_t e = 0; e < std::min<std::size_t>(set->episodes().size(), 4); ++e) {
      touched_ += static_cast<std::uint64_t>(set->episodes()[e].length) + set->episodes()[e].tasks.size();
      const auto rows = set->rows(e);
      if (!rows) continue;
      whole &= read_rows(*rows, set->episodes()[e].length, wanted);
      for (const std::string& camera : set->cameras()) {
        const auto source = set->images(e, camera);
        if (source && !source->is_video()) whole &= read_images(*source, set->episodes()[e].length);
      }
    }
    whole ? ++read_ : ++refused_;
  }

  bool read_rows(const RowSource& rows, std::int64_t length, const TableColumns& wanted) {
    const auto table = read_parquet(rows.path, wanted, {rows.first_row, length});
    if (!table) {
      judge(table.error(), rows.path);
      --refused_;
      return false;
    }
    for (const auto& [name, column] : table->vectors) {
      if (column.values.size() != column.width * static_cast<std::size_t>(table->rows))
        throw std::runtime_error("rows are missing");
      for (const double v : column.values) touched_ += v > 0 ? 1 : 0;
    }
    for (const auto& [name, column] : table->integers) {
      if (column.size() != static_cast<std::size_t>(table->rows)) throw std::runtime_error("rows are missing");
      for (const std::int64_t v : column) touched_ += static_cast<std::uint64_t>(v);
    }
    return true;
  }

  bool read_images(const ImageSource& source, std::int64_t length) {
    const auto visited = visit_image_cells(source.path, source.column, {source.first, length},
                                           [&](std::int64_t, std::span<const std::byte> bytes) {
                                             (void)decoder_.decode(bytes, "cell", image_);
                                             for (const std::byte b : bytes) touched_ += static_cast<std::uint64_t>(b);
                                             return Result<void>();
                                           });
    if (visited) return true;
    judge(visited.error(), source.path);
    --refused_;
    return false;
  }

  Random random_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::string cell_;
  StillImageDecoder decoder_;
  StillImage image_;
  std::int64_t read_ = 0, refused_ = 0;
  std::uint64_t touched_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::int64_t steps = 0;
  // in memory: every step replaces a file
  if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 0);
  try {
    Fuzzer fuzzer(seed);
    fuzzer.check_seeds();
    for (; steps < 1000 || std::chrono::steady_clock::now() < end; ++steps) fuzzer.step();
    rusage use{};
    ::getrusage(RUSAGE_SELF, &use);
    if (use.ru_maxrss > kMostResidentKiB) throw std::runtime_error(fmt::format("{} KiB were resident", use.ru_maxrss));
    fmt::print("{} inputs from seed {}: {} read, {} refused by name; {} KiB resident at most; values sum to {}\n",
               steps, seed, fuzzer.read_count(), fuzzer.refused(), use.ru_maxrss, fuzzer.touched());
  } catch (const std::exception& e) {
    fmt::print(stderr, "finding at input {} of seed {}: {}\n", steps, seed, e.what());
    return 1;
  }
  return 0;
}

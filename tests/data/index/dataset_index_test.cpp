#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "data/dataset.h"
#include "data/toy/toy_dataset.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

/// Windows that fit into 9 rows, an index in a folder of the test's.
DatasetSpec spec_of(const std::string& root, const std::string& index) {
  DatasetSpec spec;
  spec.path = root;
  spec.embodiment.layout = "horizontal";
  spec.embodiment.prompt = "none";
  spec.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}, .num_frames = 5};
  spec.image.height = 6;
  spec.image.width = 8;
  spec.max_action_dim = 5;
  spec.index.path = index;
  return spec;
}

/// Counts how often videos are looked at.
struct CountingProbe {
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  DatasetOptions options() const {
    return {.probe =
                [calls = calls](const std::string& path) {
                  ++*calls;
                  return TinyDataset::probe(path);
                },
            .threads = 2};
  }
};

std::shared_ptr<const Dataset> must_open(const DatasetSpec& spec,
                                         const DatasetOptions& options = TinyDataset::options()) {
  return Dataset::open(spec, options).value();
}

void expect_same_index(const SampleIndex& a, const SampleIndex& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::uint64_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.at(i).episode, b.at(i).episode);
    EXPECT_EQ(a.at(i).anchor, b.at(i).anchor);
  }
}

void expect_same(const Dataset& a, const Dataset& b) {
  ASSERT_EQ(a.episodes().size(), b.episodes().size());
  for (std::size_t p = 0; p < a.episodes().size(); ++p) {
    const Episode &x = a.episodes()[p], &y = b.episodes()[p];
    EXPECT_EQ(x.index, y.index);
    EXPECT_EQ(x.place, y.place);
    EXPECT_EQ(x.rows, y.rows);
    EXPECT_EQ(x.length, y.length);
    EXPECT_EQ(x.files_hash, y.files_hash);
    EXPECT_EQ(x.row_labels(), y.row_labels());
    EXPECT_EQ(x.view_height, y.view_height);
    for (std::size_t v = 0; v < a.columns().views.size(); ++v) {
      const auto from = a.images(p, v), to = b.images(p, v);
      EXPECT_EQ(from->path, to->path);
      EXPECT_EQ(from->first, to->first);
      EXPECT_EQ(from->column, to->column);
    }
    const auto t = a.read_table(p), u = b.read_table(p);
    EXPECT_EQ(t->vectors.at("action").values, u->vectors.at("action").values);
    EXPECT_EQ(t->integers, u->integers);
  }
  expect_same_index(a.train(), b.train());
  expect_same_index(a.eval(), b.eval());
  EXPECT_EQ(a.statistics().state[0].q99, b.statistics().state[0].q99);
  EXPECT_EQ(a.statistics().action[0].mean, b.statistics().action[0].mean);
  EXPECT_EQ(a.metadata_json(), b.metadata_json());
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.task_text(1), b.task_text(1));
  ASSERT_EQ(a.warnings().size(), b.warnings().size());
  for (std::size_t i = 0; i < a.warnings().size(); ++i) EXPECT_EQ(a.warnings()[i].text, b.warnings()[i].text);
  ASSERT_EQ(a.problems().size(), b.problems().size());
  for (std::size_t i = 0; i < a.problems().size(); ++i) EXPECT_EQ(a.problems()[i].text, b.problems()[i].text);
}

struct Form {
  const char* name;
  const char* version;
  bool images;
  friend std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }
};

class DatasetIndexFormTest : public ::testing::TestWithParam<Form> {
 protected:
  const LerobotFolder files_{
      LerobotSet{.version = GetParam().version, .indices = {0, 2, 3, 8, 9}, .images = GetParam().images}};
  ScratchFolder index_;
};

TEST_P(DatasetIndexFormTest, LoadedIsWhatWasMadeAndWhatTheFilesSay) {
  DatasetSpec base = spec_of(files_.root(), index_.path());
  base.eval_episodes = {3};
  for (const char* sampling : {"multi_anchor", "fixed_window"}) {
    for (const char* anchors : {"all", "windows"}) {
      for (const std::int64_t stride : {1, 3}) {
        SCOPED_TRACE(std::string(sampling) + " " + anchors + " " + std::to_string(stride));
        DatasetSpec spec = base;
        spec.sampling = sampling;
        spec.anchors = anchors;
        spec.anchor_stride = stride;
        DatasetSpec plain = spec;
        plain.index.build = "never";
        const auto from_files = must_open(plain), made = must_open(spec), loaded = must_open(spec);
        EXPECT_FALSE(from_files->index_report().loaded);
        EXPECT_FALSE(made->index_report().loaded);
        EXPECT_TRUE(loaded->index_report().loaded);
        EXPECT_EQ(loaded->index_report().folder.rfind(index_.path(), 0), 0u) << loaded->index_report().folder;
        expect_same(*from_files, *made);
        expect_same(*from_files, *loaded);
        for (std::size_t p = 0; p < loaded->episodes().size(); ++p) {
          const auto table = loaded->read_table(p);
          EXPECT_EQ(table->rows, loaded->episodes()[p].rows) << "rows of this episode only";
          EXPECT_EQ(table->vectors.at("observation.state").values[0], files_.set().state(p, 0, 0));
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, DatasetIndexFormTest,
                         ::testing::Values(Form{"V20", "v2.0", false}, Form{"V21", "v2.1", false},
                                           Form{"V30", "v3.0", false}, Form{"V30Images", "v3.0", true},
                                           Form{"V21Images", "v2.1", true}),
                         [](const auto& given) { return std::string(given.param.name); });

class DatasetIndexTest : public ::testing::Test {
 protected:
  static LerobotSet set_of(const char* version) { return {.version = version}; }
  std::string file_of(const std::string& begin) const {
    for (const auto& e : fs::recursive_directory_iterator(index_.path())) {
      if (e.is_regular_file() && e.path().filename().string().rfind(begin, 0) == 0) return e.path().string();
    }
    ADD_FAILURE() << "no index file " << begin;
    return {};
  }
  ScratchFolder index_;
};

TEST_F(DatasetIndexTest, ALoadedIndexLooksAtNoVideo) {
  const LerobotFolder files(set_of("v3.0"));
  CountingProbe probe;
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  const auto made = must_open(spec, probe.options());
  EXPECT_EQ(*probe.calls, 4) << "two cameras in two shared files each, once";
  EXPECT_EQ(made->index_report().videos_read, 4);
  EXPECT_EQ(made->index_report().episodes_checked, 5);
  const auto loaded = must_open(spec, probe.options());
  EXPECT_EQ(*probe.calls, 4);
  EXPECT_EQ(made->fingerprint(), loaded->fingerprint());
}

TEST_F(DatasetIndexTest, ChangedMetadataMakeItAnewFromWhatDidNotChange) {
  const LerobotFolder files(set_of("v2.1"));
  CountingProbe probe;
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  const auto before = must_open(spec, probe.options());
  const int looked = *probe.calls;
  files.write_text("meta/tasks.jsonl",
                   "{\"task_index\": 0, \"task\": \"lift it\"}\n{\"task_index\": 1, \"task\": \"put it down\"}\n");
  const auto after = must_open(spec, probe.options());
  EXPECT_FALSE(after->index_report().loaded);
  EXPECT_EQ(after->index_report().episodes_checked, 3) << "those whose label has another text";
  EXPECT_EQ(after->index_report().episodes_reused, 2);
  EXPECT_EQ(*probe.calls, looked) << "no video changed";
  EXPECT_EQ(after->task_text(0), "lift it");
  EXPECT_NE(after->fingerprint(), before->fingerprint());
  DatasetSpec plain = spec;
  plain.index.build = "never";
  expect_same(*must_open(plain), *after);
}

TEST_F(DatasetIndexTest, AReplacedVideoIsCheckedAnewAtOpening) {
  const LerobotFolder files(set_of("v2.1"));
  CountingProbe probe;
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  ASSERT_TRUE(must_open(spec, probe.options()));
  const int looked = *probe.calls;
  const std::string video = fs::path(files.video_file(1, 0)).lexically_relative(files.root()).string();
  files.write_text(video, "24 12 16\n");
  const auto after = must_open(spec, probe.options());
  EXPECT_EQ(after->index_report().episodes_checked, 1);
  EXPECT_EQ(*probe.calls - looked, 1);
  EXPECT_EQ(after->episodes()[1].length, 24);
  EXPECT_TRUE(must_open(spec, probe.options())->index_report().loaded);
}

TEST_F(DatasetIndexTest, AMendedFileIsFoundThoughTheMetadataAreTheSame) {
  const LerobotFolder files(set_of("v2.1"));
  const std::string video = fs::path(files.video_file(1, 0)).lexically_relative(files.root()).string();
  files.write_text(video, "junk\n");
  DatasetSpec spec = spec_of(files.root(), index_.path());
  const auto refused = Dataset::open(spec, TinyDataset::options());
  EXPECT_NE(refused.error().message().find("D06"), std::string::npos) << refused.error().message();
  const auto again = Dataset::open(spec, TinyDataset::options());
  ASSERT_FALSE(again) << "the index remembers";
  EXPECT_EQ(again.error().message(), refused.error().message());
  spec.bad_sample = "skip";
  EXPECT_EQ(must_open(spec)->skipped_episodes(), 1);
  files.write_text(video, "25 12 16\n");
  spec.bad_sample = "fail";
  const auto mended = must_open(spec);
  EXPECT_EQ(mended->episodes().size(), 5u);
  EXPECT_EQ(mended->index_report().episodes_checked, 1);
}

TEST_F(DatasetIndexTest, FilesBeyondTheComparedOnesAreLookedAtWhenTheyAreUsed) {
  const LerobotFolder files(set_of("v2.1"));
  LerobotSet shorter = set_of("v2.1");
  shorter.rows[1] = 20;
  const LerobotFolder other(shorter);
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  ASSERT_TRUE(must_open(spec));
  fs::copy_file(other.data_file(1), files.data_file(1), fs::copy_options::overwrite_existing);
  fs::last_write_time(files.data_file(2), fs::file_time_type::clock::now() + std::chrono::seconds(3));
  DatasetOptions options = TinyDataset::options();
  options.compared_files = 0;
  const auto set = must_open(spec, options);
  ASSERT_TRUE(set && set->index_report().loaded);
  EXPECT_EQ(set->replaced_files(), 0);
  const auto table = set->read_table(1);
  ASSERT_FALSE(table) << "20 rows where 25 were indexed";
  EXPECT_NE(table.error().message().find(files.data_file(1)), std::string::npos) << table.error().message();
  EXPECT_EQ(set->replaced_files(), 1);
  EXPECT_TRUE(set->read_table(2)) << "the same rows, another time";
  EXPECT_TRUE(set->read_table(2));
  EXPECT_EQ(set->replaced_files(), 2);
  options.verify_files = true;
  const auto verified = Dataset::open(spec, options);
  EXPECT_NE(verified.error().message().find("D04"), std::string::npos) << verified.error().message();
}

TEST_F(DatasetIndexTest, AppendedEpisodesAreTheOnlyOnesThatAreRead) {
  for (const char* version : {"v2.1", "v3.0"}) {
    SCOPED_TRACE(version);
    LerobotSet set = set_of(version);
    set.data_episodes = set.video_episodes = 1;
    set.files_per_chunk = 100;
    const LerobotFolder small(set);
    set.rows.push_back(30);
    const LerobotFolder large(set);
    CountingProbe probe;
    const DatasetSpec spec = spec_of(small.root(), index_.path());
    ASSERT_TRUE(must_open(spec, probe.options()));
    const int looked = *probe.calls;
    fs::copy(large.root() + "/meta", small.root() + "/meta",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    for (const char* part : {"/data", "/videos"}) {
      fs::copy(large.root() + part, small.root() + part, fs::copy_options::recursive | fs::copy_options::skip_existing);
    }
    const auto grown = must_open(spec, probe.options());
    EXPECT_EQ(grown->index_report().episodes_checked, 1);
    EXPECT_EQ(grown->index_report().episodes_reused, 5);
    EXPECT_EQ(*probe.calls - looked, 2);
    DatasetSpec plain = spec;
    plain.index.build = "never";
    expect_same(*must_open(plain), *grown);
  }
}

TEST_F(DatasetIndexTest, ADamagedIndexIsMadeAnew) {
  const LerobotFolder files(set_of("v2.1"));
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  const std::string fingerprint = must_open(spec)->fingerprint();
  std::mt19937_64 random(1);
  for (const char* name : {"samples-", "files.idx"}) {
    const std::string path = file_of(name);
    for (int i = 0; i < 6; ++i) {
      if (i % 2 == 0) {
        fs::resize_file(path, random() % fs::file_size(path));
      } else {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(random() % fs::file_size(path)));
        file.put(static_cast<char>(random() | 1));
      }
      const auto set = must_open(spec);
      EXPECT_EQ(set->fingerprint(), fingerprint);
    }
    EXPECT_TRUE(must_open(spec)->index_report().loaded);
  }
}

TEST_F(DatasetIndexTest, ABuildOfNeverLeavesNoTraceAndRebuildTakesNothingOver) {
  const LerobotFolder files(set_of("v2.1"));
  DatasetSpec spec = spec_of(files.root(), index_.path());
  spec.index.build = "never";
  const auto set = must_open(spec);
  EXPECT_EQ(set->index_report().folder, "");
  EXPECT_TRUE(fs::is_empty(index_.path()));
  spec.index.build = "auto";
  ASSERT_TRUE(must_open(spec));
  spec.index.build = "rebuild";
  EXPECT_EQ(must_open(spec)->index_report().episodes_checked, 5);
}

TEST_F(DatasetIndexTest, EmbodimentsShareTheTableOfFiles) {
  const LerobotFolder files(set_of("v2.1"));
  CountingProbe probe;
  DatasetSpec spec = spec_of(files.root(), index_.path());
  spec.embodiment.views = {"observation.images.left"};
  spec.embodiment.layout = "single";
  ASSERT_TRUE(must_open(spec, probe.options()));
  EXPECT_EQ(*probe.calls, 5);
  spec.embodiment.views = {"observation.images.left", "observation.images.right"};
  spec.embodiment.layout = "horizontal";
  const auto both = must_open(spec, probe.options());
  EXPECT_EQ(*probe.calls, 10) << "left is known";
  EXPECT_EQ(both->index_report().videos_reused, 5);
  EXPECT_EQ(both->files().size(), 15u) << "five tables, ten videos";
}

TEST_F(DatasetIndexTest, ASubsetOfEpisodesIsADatasetOfItsOwn) {
  const LerobotFolder files(set_of("v3.0"));
  DatasetSpec spec = spec_of(files.root(), index_.path());
  spec.episodes = {3, 1};
  spec.eval_episodes = {3};
  const auto set = must_open(spec);
  ASSERT_EQ(set->episodes().size(), 2u);
  EXPECT_EQ(set->episodes()[0].index, 1);
  EXPECT_GT(set->eval().size(), 0u);
  spec.episodes = {1, 17};
  const auto refused = Dataset::open(spec, TinyDataset::options());
  EXPECT_NE(refused.error().message().find("names 17"), std::string::npos);
  EXPECT_NE(refused.error().message().find("it has 5, 0 to 4"), std::string::npos) << refused.error().message();
  spec.episodes = {1};
  EXPECT_NE(Dataset::open(spec, TinyDataset::options()).error().message().find("not among data.sets[].episodes"),
            std::string::npos);
}

TEST_F(DatasetIndexTest, ARateOtherThanTheEmbodimentsIsRefused) {
  const LerobotFolder files(set_of("v2.1"));
  DatasetSpec spec = spec_of(files.root(), index_.path());
  spec.embodiment.fps = 10.05;
  EXPECT_TRUE(must_open(spec));
  spec.embodiment.fps = 15;
  const auto refused = Dataset::open(spec, TinyDataset::options());
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_NE(refused.error().message().find("10 frames/s"), std::string::npos) << refused.error().message();
}

/// Points XDG_CACHE_HOME at a folder while it lives.
class CacheHome {
 public:
  explicit CacheHome(const std::string& path) {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~CacheHome() { before_.empty() ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_F(DatasetIndexTest, AnIndexLiesInTheCacheFolderAndTheDatasetIsNotTouched) {
  const LerobotFolder files(set_of("v2.1"));
  const CacheHome cache(index_.path());
  const DatasetSpec spec = spec_of(files.root(), "");
  const auto before = testing::files_below(files.root());
  const auto set = must_open(spec);
  EXPECT_EQ(set->index_report().folder.rfind(index_ / "troupe/index/", 0), 0u) << set->index_report().folder;
  EXPECT_FALSE(fs::exists(files.root() + "/.troupe"));
  EXPECT_TRUE(must_open(spec)->index_report().loaded);
  EXPECT_EQ(testing::files_below(files.root()), before);
}

TEST_F(DatasetIndexTest, AnIndexBesideTheDatasetIsWrittenWhereItIsAskedForAndReadEverywhere) {
  const LerobotFolder files(set_of("v2.1"));
  const CacheHome cache(index_.path());
  const DatasetSpec spec = spec_of(files.root(), "beside");
  EXPECT_EQ(must_open(spec)->index_report().folder, files.root() + "/.troupe/index");
  ASSERT_EQ(::chmod(files.root().c_str(), 0555), 0);
  EXPECT_TRUE(must_open(spec)->index_report().loaded) << "read-only copies too";
  ASSERT_EQ(::chmod(files.root().c_str(), 0755), 0);
  EXPECT_TRUE(must_open(spec_of(files.root(), ""))->index_report().loaded);
}

TEST_F(DatasetIndexTest, WhatCannotBeWrittenBesideGoesToTheCacheFolder) {
  const CacheHome cache(index_.path());
  const auto expect_in_cache = [&](const LerobotFolder& files) {
    const auto set = must_open(spec_of(files.root(), "beside"));
    EXPECT_EQ(set->index_report().folder.rfind(index_ / "troupe/index/", 0), 0u) << set->index_report().folder;
    EXPECT_TRUE(must_open(spec_of(files.root(), "beside"))->index_report().loaded);
  };
  const LerobotFolder read_only(set_of("v2.1")), with_file(set_of("v2.1"));
  ASSERT_EQ(::chmod(read_only.root().c_str(), 0555), 0);
  expect_in_cache(read_only);
  EXPECT_FALSE(fs::exists(read_only.root() + "/.troupe")) << "root could have made it";
  ASSERT_EQ(::chmod(read_only.root().c_str(), 0755), 0);
  with_file.write_text(".troupe", "a file in the way\n");
  expect_in_cache(with_file);
  EXPECT_EQ(testing::text_of(with_file.root() + "/.troupe"), "a file in the way\n");
}

TEST_F(DatasetIndexTest, TheBytesOfAnIndexDoNotDependOnTimes) {
  const LerobotFolder files(set_of("v3.0"));
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  ASSERT_TRUE(must_open(spec));
  const auto first = testing::files_below(index_.path());
  ASSERT_EQ(first.size(), 2u);
  std::chrono::seconds later{1000};
  for (const auto& e : fs::recursive_directory_iterator(files.root()))
    fs::last_write_time(e.path(), fs::file_time_type::clock::now() + later++);
  fs::remove_all(index_.path());
  ASSERT_TRUE(must_open(spec));
  EXPECT_TRUE(testing::files_below(index_.path()) == first);
}

TEST_F(DatasetIndexTest, ACopyThatIsNewToThisMachineKeepsItsIndexAndAChangedFileIsFound) {
  const LerobotFolder files(set_of("v2.1"));
  const CacheHome cache(index_ / "cache");
  const DatasetSpec spec = spec_of(files.root(), index_ / "index");
  ASSERT_TRUE(must_open(spec));
  const auto touch = [&] {
    for (const auto& e : fs::recursive_directory_iterator(files.root()))
      fs::last_write_time(e.path(), fs::file_time_type::clock::now() + std::chrono::seconds(9));
  };
  touch();
  fs::remove_all(index_ / "cache");
  EXPECT_TRUE(must_open(spec)->index_report().loaded) << "nobody knows times: the contents are the same";
  fs::remove_all(index_ / "cache");
  const std::string video = fs::path(files.video_file(1, 0)).lexically_relative(files.root()).string();
  files.write_text(video, "24 12 16\n");  // as many bytes as before
  const auto set = must_open(spec);
  EXPECT_EQ(set->index_report().episodes_checked, 1);
  EXPECT_EQ(set->episodes()[1].length, 24);
}

TEST_F(DatasetIndexTest, WithoutAWritableFolderItStaysInMemory) {
  const LerobotFolder files(set_of("v2.1"));
  const auto set = must_open(spec_of(files.root(), "/proc/none"));
  EXPECT_EQ(set->index_report().folder, "");
  EXPECT_GT(set->train().size(), 0u);
}

TEST_F(DatasetIndexTest, BuildersAtTheSameTimeAgree) {
  const LerobotFolder files(set_of("v3.0"));
  const DatasetSpec spec = spec_of(files.root(), index_.path());
  std::vector<std::shared_ptr<const Dataset>> sets(4);
  {
    std::vector<std::jthread> threads;
    for (auto& set : sets) threads.emplace_back([&] { set = must_open(spec); });
  }
  for (const auto& set : sets) {
    EXPECT_EQ(set->fingerprint(), sets[0]->fingerprint());
  }
  EXPECT_TRUE(must_open(spec)->index_report().loaded);
}

TEST_F(DatasetIndexTest, PacketTablesComeFromTheIndexUntilAFileIsReplaced) {
  ASSERT_TRUE(write_toy_dataset(index_ / "toy", {.episodes = 2, .frames = 32}));
  DatasetSpec spec = spec_of(index_ / "toy", index_ / "idx");
  spec.image.height = spec.image.width = 32;
  ASSERT_TRUE(must_open(spec, {}));
  const auto set = must_open(spec, {});
  ASSERT_TRUE(set->index_report().loaded);
  const auto images = set->images(0, 0);
  ASSERT_TRUE(images && images->is_video());
  auto identity = identify_video_file(images->path);
  const auto table = set->packet_table(images->path, *identity);
  ASSERT_TRUE(table);
  const auto read = read_packet_table(images->path, true, std::chrono::steady_clock::now() + std::chrono::minutes(1));
  EXPECT_EQ(table->decode_of_rank, (*read)->decode_of_rank);
  ASSERT_TRUE(table->codec != nullptr);
  EXPECT_EQ(set->packet_table("/elsewhere.mp4", *identity), nullptr);
  EXPECT_EQ(set->replaced_files(), 0);

  fs::last_write_time(images->path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  identity = identify_video_file(images->path);
  EXPECT_EQ(set->packet_table(images->path, *identity), nullptr) << "the file is another one";
  EXPECT_EQ(set->packet_table(images->path, *identity), nullptr);
  EXPECT_EQ(set->replaced_files(), 1);
  const auto again = must_open(spec, {});
  EXPECT_FALSE(again->index_report().loaded);
  EXPECT_EQ(again->index_report().videos_read, 1);
  EXPECT_TRUE(again->packet_table(images->path, *identity));
}

}  // namespace
}  // namespace troupe::data

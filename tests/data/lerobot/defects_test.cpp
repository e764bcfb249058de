// One broken dataset per defect (D01 and on, data/lerobot/defects.h): its code, a message that names the file and how
// to mend it, and what is done about it, by Dataset::open and by the health report.
#include "data/lerobot/defects.h"

#include <gmock/gmock.h>

#include "data/dataset.h"
#include "data/health/health_check.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_dataset.h"

namespace troupe::data {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// What Dataset::open does: refuse whatever bad_sample says, refuse or leave the episode out, or cope and say so.
enum class Action { fail, drop, warn };

struct Broken {
  const char* name;
  const char* code;
  Action action;
  const char* file;  ///< part of the path that messages name
  const char* text;  ///< part of the sentence
  void (*spoil)(const TinyDataset&);
  VideoProbe probe = TinyDataset::probe;
  friend std::ostream& operator<<(std::ostream& out, const Broken& b) { return out << b.name; }
};

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = text_of(path);
  const auto at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path;
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

void spoil_rows(const TinyDataset& files, TinyEpisode episode) { files.write_parquet(1, episode, 40); }

void replace_by_folder(const std::string& path) {
  fs::remove(path);
  fs::create_directory(path);
}

const Broken kBroken[] = {
    {"D01UnknownVersion", "D01", Action::fail, "info.json", "v9.9",
     [](const TinyDataset& f) { replace_in(f.root() + "/meta/info.json", "v2.1", "v9.9"); }},
    {"D01NotJson", "D01", Action::fail, "info.json", "",
     [](const TinyDataset& f) { f.write_lines("meta/info.json", {"{"}); }},
    {"D01Missing", "D01", Action::fail, "info.json", "",
     [](const TinyDataset& f) { fs::remove(f.root() + "/meta/info.json"); }},
    {"D01Modality", "D01", Action::fail, "modality.json", "",
     [](const TinyDataset& f) { f.write_lines("meta/modality.json", {"{"}); }},
    {"D02WrongCount", "D02", Action::warn, "info.json", "total_episodes",
     [](const TinyDataset& f) {
       replace_in(f.root() + "/meta/info.json", "\"total_episodes\": 3", "\"total_episodes\": 30");
     }},
    {"D03NoFooter", "D03", Action::drop, "episode_000001.parquet", "not a readable Parquet file",
     [](const TinyDataset& f) { fs::resize_file(f.parquet(1), fs::file_size(f.parquet(1)) - 8); }},
    {"D03Missing", "D03", Action::drop, "episode_000001.parquet", "does not exist",
     [](const TinyDataset& f) { fs::remove(f.parquet(1)); }},
    {"D03Folder", "D03", Action::drop, "episode_000001.parquet", "is a folder",
     [](const TinyDataset& f) { replace_by_folder(f.parquet(1)); }},
    {"D04Rows", "D04", Action::drop, "episode_000001.parquet", "39 rows",
     [](const TinyDataset& f) { spoil_rows(f, {.rows = 39}); }},
    {"D04Nan", "D04", Action::drop, "episode_000001.parquet", "nan in row 5",
     [](const TinyDataset& f) {
       spoil_rows(f, {.state = [](std::int64_t r, std::int64_t) { return r == 5 ? NAN : 0.0; }});
     }},
    {"D05Timestamps", "D05", Action::warn, "episode_00000", "timestamp steps by",
     [](const TinyDataset& f) { replace_in(f.root() + "/meta/info.json", "\"fps\": 10", "\"fps\": 20"); }},
    {"D06Empty", "D06", Action::drop, "episode_000001.mp4", "zero bytes",
     [](const TinyDataset& f) { fs::resize_file(f.video(1), 0); }},
    {"D06Missing", "D06", Action::drop, "episode_000001.mp4", "does not exist",
     [](const TinyDataset& f) { fs::remove(f.video(1, "right")); }},
    {"D06DanglingLink", "D06", Action::drop, "episode_000001.mp4", "is a link to /nonexistent",
     [](const TinyDataset& f) {
       fs::remove(f.video(1));
       fs::create_symlink("/nonexistent", f.video(1));
     }},
    {"D06Folder", "D06", Action::drop, "episode_000001.mp4", "is a folder",
     [](const TinyDataset& f) { replace_by_folder(f.video(1)); }},
    {"D06NoMoov", "D06", Action::drop, "episode_000001.mp4", "moov",
     [](const TinyDataset& f) { f.write_lines(fs::relative(f.video(1), f.root()).string(), {"junk"}); }},
    {"D07TooFew", "D07", Action::drop, "episode_000001.mp4", "38",
     [](const TinyDataset& f) { f.write_video(1, "left", 38); }},
    {"D08Rate", "D08", Action::warn, ".mp4", "frames/s", [](const TinyDataset&) {},
     [](const std::string& path) -> Result<VideoInfo> {
       TROUPE_ASSIGN(VideoInfo info, TinyDataset::probe(path));
       info.fps = 30;
       return info;
     }},
    {"D09Sizes", "D09", Action::drop, "episode_000001.mp4", "share one size",
     [](const TinyDataset& f) { f.write_video(1, "right", 40, 14); }},
    {"D10Uneven", "D10", Action::warn, ".mp4", "not equally spaced", [](const TinyDataset&) {},
     [](const std::string& path) -> Result<VideoInfo> {
       TROUPE_ASSIGN(VideoInfo info, TinyDataset::probe(path));
       info.uneven = true;
       return info;
     }},
    {"D11UnknownTask", "D11", Action::drop, "episode_000001.parquet", "tasks.jsonl",
     [](const TinyDataset& f) { spoil_rows(f, {.task = [](std::int64_t) { return 9; }}); }},
    {"D11EmptyText", "D11", Action::warn, "episode_00000", "says nothing",
     [](const TinyDataset& f) {
       f.write_lines("meta/tasks.jsonl", {R"({"task_index": 0, "task": ""})", R"({"task_index": 1, "task": "x"})"});
     }},
    {"D12NotANumber", "D12", Action::warn, "stats.json", "stats.json",
     [](const TinyDataset& f) { f.write_lines("meta/stats.json", {R"({"action": {"max": [NaN, 1, 1]}})"}); }},
    {"D12Null", "D12", Action::warn, "stats.json", "finite",
     [](const TinyDataset& f) {
       const std::string six =
           R"({"min": [0,0,0], "max": [1,1,1], "mean": [0,0,0], "std": [1,1,1], "q01": [0,0,null], "q99": [1,1,1]})";
       f.write_lines("meta/stats.json", {"{\"action\": " + six + ", \"observation.state\": " + six + "}"});
     }},
    {"D12Constant", "D12", Action::warn, "troupe-test", "constant",
     [](const TinyDataset& f) {
       TinyEpisode e;
       e.action = [](std::int64_t r, std::int64_t d) { return d == 1 ? 0.5 : 0.1 * static_cast<double>(r); };
       for (std::size_t i = 0; i < 3; ++i) f.write_parquet(i, e, 40 * static_cast<std::int64_t>(i));
     }},
    {"D14Short", "D14", Action::warn, "troupe-test", "1 of 3 episodes",
     [](const TinyDataset& f) {
       f.write_parquet(2, {.rows = 8}, 80);
       for (const char* view : {"left", "right"}) f.write_video(2, view, 8);
       replace_in(f.root() + "/meta/episodes.jsonl", R"("episode_index": 2, "tasks": [], "length": 40)",
                  R"("episode_index": 2, "tasks": [], "length": 8)");
     }},
};

std::string list(const std::vector<DatasetProblem>& problems) {
  std::string out;
  for (const DatasetProblem& p : problems) out += p.code + " " + p.path + ": " + p.text + "\n";
  return out;
}

const DatasetProblem* find(const std::vector<DatasetProblem>& problems, const Broken& b) {
  for (const DatasetProblem& p : problems) {
    if (p.code == b.code && p.text.find(b.text) != std::string::npos && p.text.find(b.file) != std::string::npos)
      return &p;
  }
  return nullptr;
}

class DefectTest : public ::testing::TestWithParam<Broken> {
 protected:
  DefectTest() {
    job_ = files_.job();
    job_.data.index.path = index_.path();
    GetParam().spoil(files_);
  }
  Result<std::shared_ptr<const Dataset>> open(const std::string& bad_sample) {
    job_.data.bad_sample = bad_sample;
    return Dataset::open(job_.data, job_.model, {.probe = GetParam().probe, .threads = 2});
  }

  HealthOptions health_options() const {
    HealthOptions options;
    options.data = files_.root();
    options.embodiment = job_.data.embodiment;
    options.window = job_.data.window;
    options.horizon = job_.data.window.action_horizon;
    options.index = job_.data.index;
    options.threads = 2;
    options.probe = GetParam().probe;
    return options;
  }

  TinyDataset files_;
  ScratchFolder index_;
  JobConfig job_;
};

TEST_P(DefectTest, OpeningTheDatasetNamesTheFileAndActs) {
  const Broken& b = GetParam();
  const auto strict = open("fail"), lenient = open("skip");
  if (b.action == Action::fail) {
    for (const auto* opened : {&strict, &lenient}) {
      ASSERT_FALSE(*opened);
      EXPECT_THAT(opened->error().message(), HasSubstr(b.file));
      EXPECT_THAT(opened->error().message(), HasSubstr(b.text));
    }
    return;
  }
  if (b.action == Action::warn) {
    EXPECT_EQ((*strict)->episodes().size(), 3u);
    EXPECT_NE(find((*strict)->warnings(), b), nullptr) << list((*strict)->warnings());
    return;
  }
  EXPECT_EQ(strict.error().code(), Errc::data_loss);
  EXPECT_THAT(strict.error().message(), HasSubstr(std::string("\n  ") + b.code + " "));
  EXPECT_THAT(strict.error().message(), HasSubstr(b.file));
  EXPECT_THAT(strict.error().message(), HasSubstr(b.text));
  EXPECT_THAT(strict.error().message(),
              HasSubstr("to mend " + std::string(b.code) + ": " + std::string(find_defect(b.code)->remedy)));
  EXPECT_THAT(strict.error().message(), HasSubstr("1 of 3 episodes"));
  ASSERT_EQ((*lenient)->episodes().size(), 2u);
  EXPECT_EQ((*lenient)->episodes()[1].index, 2);
  EXPECT_EQ((*lenient)->skipped_episodes(), 1);
  EXPECT_NE(find((*lenient)->problems(), b), nullptr) << list((*lenient)->problems());
}

TEST_P(DefectTest, TheHealthReportNamesTheFileAndTheRemedy) {
  const Broken& b = GetParam();
  const auto report = check_health(health_options());
  std::string found;
  const HealthFinding* hit = nullptr;
  for (const HealthFinding& f : report->findings) {
    found += f.code + " " + f.text + "\n";
    if (f.code == b.code && f.text.find(b.text) != std::string::npos &&
        (f.text + f.path).find(b.file) != std::string::npos)
      hit = &f;
  }
  ASSERT_NE(hit, nullptr) << found;
  const bool bad = b.action != Action::warn;
  EXPECT_EQ(report->count(FindingLevel::problem) > 0, bad) << found;
  EXPECT_EQ(hit->level == FindingLevel::problem, bad);
  EXPECT_EQ(report->usable_episodes(), b.action == Action::fail ? 0 : bad ? 2 : 3);
  const Defect* kind = find_defect(b.code);
  ASSERT_NE(kind, nullptr);
  EXPECT_FALSE(kind->action.empty());
  EXPECT_FALSE(kind->remedy.empty());
}

INSTANTIATE_TEST_SUITE_P(All, DefectTest, ::testing::ValuesIn(kBroken),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(DefectTableTest, EveryCodeOfTheSpecificationIsThereOnce) {
  for (int i = 1; i <= 16; ++i) {
    const std::string code = (i < 10 ? "D0" : "D") + std::to_string(i);
    ASSERT_NE(find_defect(code), nullptr) << code;
  }
  for (std::size_t i = 1; i < defects().size(); ++i) EXPECT_LT(defects()[i - 1].code, defects()[i].code);
}

/// The report of a folder of the tiny dataset's form, with the windows of a job.
Result<HealthReport> health_of(const std::string& root, const JobConfig& job) {
  HealthOptions options;
  options.data = root;
  options.window = job.data.window;
  options.index = job.data.index;
  options.probe = TinyDataset::probe;
  return check_health(options);
}

TEST(OtherDefectsTest, D09IsOnlyAWarningWhereNobodySaidThatTheViewsShareASample) {
  const TinyDataset files;
  files.write_video(1, "right", 40, 14);
  const auto report = health_of(files.root(), files.job());
  EXPECT_EQ(report->count(FindingLevel::problem), 0);
  EXPECT_EQ(report->usable_episodes(), 3);
  EXPECT_TRUE(std::any_of(report->findings.begin(), report->findings.end(),
                          [](const HealthFinding& f) { return f.code == "D09"; }));
}

TEST(OtherDefectsTest, D15TimesThatDriftAreAWarningAndLengthsAreUsedInstead) {
  testing::LerobotSet set;
  set.shift = [](std::size_t e, std::size_t, double& from, double& to) {
    from += 0.06 * static_cast<double>(e);
    to += 0.06 * static_cast<double>(e);
  };
  const testing::LerobotFolder files(set);
  JobConfig job = TinyDataset({TinyEpisode{}}).job();
  job.data.sets = {{files.root(), 1.0}};
  job.data.index.build = "never";
  const auto opened = Dataset::open(job.data, job.model, TinyDataset::options());
  EXPECT_THAT(list((*opened)->warnings()), HasSubstr("D15 "));
  EXPECT_EQ((*opened)->episodes().size(), 5u);
  EXPECT_EQ((*opened)->images(1, 0)->first, 40);

  const auto report = health_of(files.root(), job);
  EXPECT_EQ(report->count(FindingLevel::problem), 0);
  const auto is_d15 = [](const HealthFinding& f) {
    return f.code == "D15" && f.text.find(".mp4") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(report->findings.begin(), report->findings.end(), is_d15));
}

TEST(OtherDefectsTest, D16AReplacedFileIsNamedAndItsEntryMadeAnew) {
  const TinyDataset files;
  const ScratchFolder index;
  JobConfig job = files.job();
  job.data.index.path = index.path();
  ASSERT_TRUE(Dataset::open(job.data, job.model, TinyDataset::options()));
  TinyEpisode other;
  other.state = [](std::int64_t r, std::int64_t d) { return std::sin(static_cast<double>(7 * r + d)); };
  files.write_parquet(1, other, 40);
  fs::last_write_time(files.parquet(1), fs::file_time_type::clock::now() + std::chrono::seconds(5));

  const auto report = health_of(files.root(), job);
  std::vector<std::string> named;
  for (const HealthFinding& f : report->findings) {
    if (f.code == "D16") named.push_back(f.path);
  }
  EXPECT_EQ(named, (std::vector<std::string>{files.parquet(1)}));

  EXPECT_FALSE((*Dataset::open(job.data, job.model, TinyDataset::options()))->index_report().loaded);
  const auto settled = health_of(files.root(), job);
  for (const HealthFinding& f : settled->findings) EXPECT_NE(f.code, "D16") << f.text;
  const auto third = Dataset::open(job.data, job.model, TinyDataset::options());
  EXPECT_TRUE((*third)->index_report().loaded);
}

TEST(OtherDefectsTest, D16OpeningAloneMakesTheEntryAnew) {
  const TinyDataset files;
  const ScratchFolder index;
  JobConfig job = files.job();
  job.data.index.path = index.path();
  const auto first = Dataset::open(job.data, job.model, TinyDataset::options());
  TinyEpisode other;
  other.state = [](std::int64_t r, std::int64_t d) { return 100 + static_cast<double>(r * d); };
  files.write_parquet(1, other, 40);
  fs::last_write_time(files.parquet(1), fs::file_time_type::clock::now() + std::chrono::seconds(5));
  const auto second = Dataset::open(job.data, job.model, TinyDataset::options());
  EXPECT_EQ((*second)->index_report().episodes_checked, 1);
  EXPECT_EQ((*second)->index_report().episodes_reused, 2);
  EXPECT_NE((*second)->statistics().state[0].max, (*first)->statistics().state[0].max);
}

}  // namespace
}  // namespace troupe::data

// What a conversion refuses before it writes, and what it leaves out when it is told to.
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "tests/data/convert/convert_test_support.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

class ConvertRefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override { make_toy(toy_); }

  Error refused(const ConvertDatasetRequest& request) const {
    const auto report = convert_dataset(request);
    EXPECT_FALSE(report) << "was not refused";
    return report ? Error{Errc::internal, "nothing"} : report.error();
  }
  /// Sets keys of info.json.
  void change_info(const Json& changes) const {
    Json info = json_of(toy_ + "/meta/info.json");
    info.update(changes);
    write_text(toy_ + "/meta/info.json", info.dump());
  }
  /// The dataset as v3.0.
  std::string v30() const {
    converted(request_for(toy_, scratch_ / "v30"));
    return scratch_ / "v30";
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy", out_ = scratch_ / "out";
};

TEST_F(ConvertRefusalsTest, AnOutputThatSomebodyWritesIsRefusedWithTheProcess) {
  const std::string lock = out_ + "/.troupe/convert/lock";
  fs::create_directories(fs::path(lock).parent_path());
  {
    const auto held = base::FileLock::acquire(lock).value();
    for (const bool resume : {false, true}) {
      auto request = request_for(toy_, out_);
      request.resume = resume;
      const Error error = refused(request);
      EXPECT_EQ(error.code(), Errc::failed_precondition);
      EXPECT_THAT(error.message(), AllOf(HasSubstr(out_), HasSubstr("process " + std::to_string(::getpid()))));
    }
    EXPECT_EQ(names_of(files_below(out_)), std::vector<std::string>{".troupe/convert/lock"});
  }
  // nobody holds it any more: the file alone is no lock, and is gone at the end
  converted(request_for(toy_, out_));
  EXPECT_FALSE(fs::exists(lock));
}

TEST_F(ConvertRefusalsTest, ARefusalLeavesNoFolderOfItsOwn) {
  refused(request_for(scratch_ / "nowhere", scratch_ / "deep/er/out"));
  EXPECT_FALSE(fs::exists(scratch_ / "deep"));
  fs::create_directories(out_);
  refused(request_for(scratch_ / "nowhere", out_));
  EXPECT_TRUE(fs::is_empty(out_)) << "the user's own folder stays";
}

TEST_F(ConvertRefusalsTest, ACameraWithoutFilesIsRefusedUnlessItIsDropped) {
  fs::remove_all(toy_ + "/videos/chunk-000/" + kSide);
  for (const auto& source : {toy_, std::string()}) {
    auto request = request_for(source.empty() ? toy_ : source, out_);
    request.strict = source.empty();
    request.verify = ConvertVerify::full;
    const Error error = refused(request);
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("D06"), HasSubstr(kSide), HasSubstr("episode_000000.mp4"),
                                       HasSubstr("--drop-camera observation.images.side")));
    EXPECT_FALSE(fs::exists(out_));
  }
}

TEST_F(ConvertRefusalsTest, AV30CameraWhoseOnlyFileIsGoneIsRefused) {
  const std::string source = v30();
  fs::remove_all(source + "/videos/" + kSide);
  EXPECT_THAT(refused(request_for(source, out_)).message(), HasSubstr("--drop-camera observation.images.side"));
}

TEST_F(ConvertRefusalsTest, ADroppedCameraIsNowhereInTheResult) {
  write_text(toy_ + "/meta/modality.json",
             R"({"state": {"arm": {"start": 0, "end": 3}}, "action": {"arm": {"start": 0, "end": 3}},
                 "video": {"front": {"original_key": "observation.images.front"}, "side": {}}})");
  write_text(toy_ + "/meta/stats.json", R"({"observation.images.side": {"mean": [1]}, "action": {"q01": [0]}})");
  for (const bool files : {true, false}) {
    if (!files) fs::remove_all(toy_ + "/videos/chunk-000/" + kSide);
    for (const auto to : {DatasetVersion::v30, DatasetVersion::v21}) {
      SCOPED_TRACE(to == DatasetVersion::v30 ? "v3.0" : "v2.1");
      const std::string out = out_ + (files ? "a" : "b") + (to == DatasetVersion::v30 ? "3" : "2");
      auto request = request_for(toy_, out, to);
      request.drop_cameras = {kSide};
      request.verify = ConvertVerify::full;
      EXPECT_EQ(converted(request).episodes, 3);
      for (const auto& [name, bytes] : files_below(out)) {
        EXPECT_THAT(name, Not(HasSubstr(kSide)));
        if (name.starts_with(".troupe/")) continue;
        EXPECT_THAT(bytes, Not(HasSubstr(kSide))) << name;
      }
      EXPECT_FALSE(json_of(out + "/meta/modality.json")["video"].contains("side"));
      EXPECT_TRUE(json_of(out + "/meta/modality.json")["video"].contains("front"));
      EXPECT_EQ(json_of(out + "/meta/info.json")["features"].count("observation.images.front"), 1U);
    }
  }
}

TEST_F(ConvertRefusalsTest, OnlyCamerasOfTheDatasetAreDropped) {
  auto request = request_for(toy_, out_);
  request.drop_cameras = {"observation.images.top"};
  const Error error = refused(request);
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("observation.images.top"), HasSubstr(kSide)));
}

TEST_F(ConvertRefusalsTest, NamesThatNoFileSystemHoldsAreRefused) {
  const std::string name(300, 'a');
  for (const char* key : {"data_path", "video_path"}) {
    SCOPED_TRACE(key);
    const Json before = json_of(toy_ + "/meta/info.json");
    change_info({{key, name + "/{episode_index:06d}"}});
    const Error error = refused(request_for(toy_, out_));
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("info.json"), HasSubstr(key), HasSubstr("300 bytes")));
    write_text(toy_ + "/meta/info.json", before.dump());
  }
  // a camera's name is a folder too
  std::string info = text_of(toy_ + "/meta/info.json");
  for (auto at = info.find(kSide); at != std::string::npos; at = info.find(kSide, at + 1))
    info.replace(at, std::string(kSide).size(), name);
  write_text(toy_ + "/meta/info.json", info);
  EXPECT_THAT(refused(request_for(toy_, out_)).message(), HasSubstr("300 bytes"));
}

TEST_F(ConvertRefusalsTest, PathsThatAreTooLongTogetherAreNoCrash) {
  std::string path;
  for (int i = 0; i < 30; ++i) path += std::string(200, 'a') + "/";
  change_info({{"video_path", path + "{video_key}/{episode_index}.mp4"}});
  EXPECT_EQ(refused(request_for(toy_, out_)).code(), Errc::data_loss);
  change_info({{"data_path", path + "{episode_index}.parquet"}});
  EXPECT_FALSE(convert_dataset(request_for(toy_, out_)));
}

TEST_F(ConvertRefusalsTest, JsonThatIsNestedTooDeepIsRefusedBeforeItIsBuilt) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  for (const char* name : {"info.json", "episodes.jsonl", "tasks.jsonl", "modality.json"}) {
    SCOPED_TRACE(name);
    const std::string path = toy_ + "/meta/" + name, before = text_of(path);
    write_text(path, std::string(name) == "modality.json" ? deep : "{\"extra\": " + deep + "}\n");
    auto request = request_for(toy_, out_);
    request.drop_cameras = {kSide};  // modality.json is read then
    const Error error = refused(request);
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(name), HasSubstr("nested more than 64 deep")));
    write_text(path, before);
    fs::remove_all(out_);
  }
  // statistics are computed anew, whatever the file holds
  write_text(toy_ + "/meta/episodes_stats.jsonl", "{\"episode_index\": 0, \"stats\": " + deep + "}\n");
  write_text(toy_ + "/meta/stats.json", deep);
  EXPECT_EQ(converted(request_for(toy_, out_)).episodes, 3);
}

TEST_F(ConvertRefusalsTest, ARateThatNoContainerHoldsIsRefusedByName) {
  for (const double fps : {1e-30, 1e-4, 0.0, -10.0, 1e7, 1e300}) {
    change_info({{"fps", fps}});
    const Error error = refused(request_for(toy_, out_));
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("info.json"), HasSubstr("fps"), HasSubstr("0.001")));
  }
  for (const double fps : {0.001, 1e6}) {
    change_info({{"fps", fps}});
    EXPECT_EQ(converted(request_for(toy_, out_)).episodes, 3) << fps;
    fs::remove_all(out_);
  }
}

TEST_F(ConvertRefusalsTest, FilesWithTheNamesOfOurFoldersAreNotCarried) {
  write_text(toy_ + "/.troupe", "a file where a folder would be");
  write_text(toy_ + "/LICENSE", "do as you like");
  write_text(toy_ + "/meta/zoo.json", "{}");
  // a link that leads nowhere hides nothing
  for (const char* name : {"/A", "/Z", "/meta/a", "/meta/z"}) fs::create_symlink("nowhere", toy_ + name);
  EXPECT_EQ(converted(request_for(toy_, out_)).episodes, 3);
  EXPECT_EQ(text_of(out_ + "/LICENSE"), "do as you like");
  EXPECT_EQ(text_of(out_ + "/meta/zoo.json"), "{}");
  EXPECT_TRUE(fs::is_directory(out_ + "/.troupe"));
}

TEST_F(ConvertRefusalsTest, ChosenEpisodesAreNumberedAnew) {
  make_toy(toy_ + "5", 5, 16);
  write_text(toy_ + "5/meta/step_filter.jsonl",
             "{\"episode_index\": 1, \"step_indices\": [2]}\n{\"episode_index\": 4, \"step_indices\": [3]}\n");
  const auto all = DatasetSource::open(toy_ + "5").value();
  for (const auto to : {DatasetVersion::v30, DatasetVersion::v21}) {
    const std::string out = out_ + (to == DatasetVersion::v30 ? "3" : "2");
    auto request = request_for(toy_ + "5", out, to);
    request.episodes = {{4, 4}, {1, 2}};
    request.verify = ConvertVerify::full;
    EXPECT_EQ(converted(request).episodes, 3);
    const auto chosen = DatasetSource::open(out).value();
    ASSERT_EQ(chosen.episodes.size(), 3U);
    const std::int64_t wanted[] = {1, 2, 4};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(chosen.episodes[i].index, static_cast<std::int64_t>(i));
      EXPECT_EQ(chosen.episodes[i].length, all.episodes[static_cast<std::size_t>(wanted[i])].length);
    }
    EXPECT_EQ(json_of(out + "/meta/info.json")["splits"], Json({{"train", "0:3"}}));
    EXPECT_EQ(text_of(out + "/meta/step_filter.jsonl"),
              "{\"episode_index\":0,\"step_indices\":[2]}\n{\"episode_index\":2,\"step_indices\":[3]}\n");
  }
}

TEST_F(ConvertRefusalsTest, EpisodesThatAreNotThereCannotBeChosen) {
  auto request = request_for(toy_, out_);
  request.episodes = {{0, 1}, {3, 9}};
  const Error error = refused(request);
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("3..9"), HasSubstr("0 to 2")));
  request.sources.push_back(toy_);
  EXPECT_EQ(refused(request).code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::data

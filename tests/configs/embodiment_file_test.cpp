#include "configs/embodiment_file.h"

#include "configs/embedded.h"
#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

const std::string kRobot =
    "tag: my_robot\nid: 7\nviews: [front]\ncameras: {front: observation.images.front}\nfps: 25\n";

TEST(EmbodimentFileTest, ANameTakesTheFileInsideTheBinary) {
  const JobConfig job = job_of(load(kTiny + "data: {embodiment: oxe_droid}\n"));
  EXPECT_EQ(job.data.embodiment.tag, "oxe_droid");
  EXPECT_EQ(job.data.embodiment.slices.at("action.joint_position"), "action[14:21]");
  EXPECT_EQ(job.data.embodiment.views.size(), 3u);
}

TEST(EmbodimentFileTest, EveryEmbeddedFileIsValid) {
  int found = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with("embodiments/")) continue;
    ++found;
    const std::string name(file.name.substr(12, file.name.size() - 12 - 5));
    const auto embodiment = load_embodiment(name);
    EXPECT_FALSE(embodiment->tag.empty());
    EXPECT_FALSE(find_embedded(name)) << "an embodiment's bare name must not be a job";
  }
  EXPECT_GE(found, 5);
}

TEST(EmbodimentFileTest, AFileBesideTheJobReplacesWhatWeakerLayersSaid) {
  const ScratchFolder dir;
  write(dir, "my_robot.yaml", kRobot);
  const std::string job_file =
      write(dir, "job.yaml", "extends: recipes/sft_gr1_tiny.yaml\ndata: {embodiment: my_robot.yaml}\n");
  const auto outcome = load_job(job_file, {"data.embodiment.id=9"});
  const JobConfig job = job_of(outcome);
  EXPECT_EQ(job.data.embodiment.tag, "my_robot");
  EXPECT_EQ(job.data.embodiment.id, 9);
  EXPECT_TRUE(job.data.embodiment.relative_action_keys.empty());
  EXPECT_EQ(outcome.config->provenance.at("data.embodiment.fps"), dir / "my_robot.yaml" + ":5");
}

TEST(EmbodimentFileTest, TheCommandLineTakesNamesAndFiles) {
  const ScratchFolder dir;
  const std::string file = write(dir, "my_robot.yaml", kRobot);
  EXPECT_EQ(job_of(load_job("recipes/sft_gr1_tiny.yaml", {"data.embodiment=g1_bottle"})).data.embodiment.tag,
            "unitree_g1");
  EXPECT_EQ(job_of(load_job("recipes/sft_gr1_tiny.yaml", {"data.embodiment=" + file})).data.embodiment.tag, "my_robot");
}

TEST(EmbodimentFileTest, DatasetsNameTheirOwn) {
  const ScratchFolder dir;
  write(dir, "robots/my_robot.yaml", kRobot);
  const std::string text =
      kTiny +
      "data: {sets: [{path: a, embodiment: robots/my_robot.yaml}, {path: b, embodiment: gr1_unified}, {path: c}, "
      "{path: d, embodiment: robots/my_robot.yaml}]}\n";
  const auto outcome = load_job(write(dir, "job.yaml", text), {});
  const JobConfig job = job_of(outcome);
  EXPECT_EQ(job.data.sets[0].embodiment, "my_robot");
  EXPECT_EQ(job.data.sets[3].embodiment, "my_robot");
  EXPECT_EQ(job.data.embodiments.at("my_robot").fps, 25);
  EXPECT_EQ(job.data.embodiments.at("gr1_unified").id, 24);
  EXPECT_EQ(job.data.embodiments.size(), 2u);
  // what is written beside a checkpoint needs no file any more
  const JobConfig again = job_of(load_job_text("resolved.yaml", outcome.config->resolved_yaml, {}));
  EXPECT_TRUE(differing_keys(job, again).empty());
}

TEST(EmbodimentFileTest, ListedEmbodimentsMayBeFilesToo) {
  const JobConfig job =
      job_of(load(kTiny + "data: {embodiments: {left: oxe_droid}, sets: [{path: a, embodiment: left}]}\n"));
  EXPECT_EQ(job.data.embodiments.at("left").id, 17);
  EXPECT_EQ(job.data.sets[0].embodiment, "left");
}

TEST(EmbodimentFileTest, UnknownNamesAndKeysAreNamed) {
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data: {embodiment: oxe_drod}\n")), "did you mean 'oxe_droid'?"));
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data: {sets: [{path: a, embodiment: nobody}]}\n")),
                       "data.sets[0].embodiment: 'nobody' does not exist"));
  const ScratchFolder dir;
  const auto wrong = load_embodiment(write(dir, "bad.yaml", kRobot + "vews: [a]\n"));
  EXPECT_TRUE(contains(wrong.error().message(), "vews"));
  const auto slice = load_embodiment(write(dir, "slice.yaml", kRobot + "slices: {action.arm: \"action[7:3]\"}\n"));
  EXPECT_TRUE(contains(slice.error().message(), "wants column[start:end]"));
}

TEST(EmbodimentFileTest, OffsetsOfOneRobotMustNumberTheWindows) {
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data: {embodiment: {video_offsets: [0, 1]}}\n")),
                       "data.embodiment.video_offsets: 2 offsets"));
}

}  // namespace
}  // namespace troupe::configs

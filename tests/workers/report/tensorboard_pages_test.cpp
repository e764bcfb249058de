#include "workers/report/run/tensorboard_pages.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <set>

#include "placement/render.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tensorboard_reader.h"
#include "workers/report/chart.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

class TensorboardPagesTest : public ::testing::Test {
 protected:
  TensorboardPagesTest() {
    job_.job.name = "arm";
    plan_ = plan_from_json(text_of(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/plans/laptop_threads.json")).value();
    fs::create_directories(run_.path("tb"));
    fs::create_directories(run_.path("eval/step_000040"));
  }

  /// The Value of each record of the newest event file but its first, by tag, with the step.
  std::map<std::string, std::pair<std::int64_t, std::multimap<std::uint64_t, std::string>>> values() const {
    std::map<std::string, std::pair<std::int64_t, std::multimap<std::uint64_t, std::string>>> found;
    const auto records = read_records(files_in(run_.path("tb")).back());
    for (std::size_t i = 1; i < records.size(); ++i) {
      const auto value = value_of(records[i]);
      found[value.find(1)->second] = {as<std::int64_t>(fields_of(records[i]).find(2)->second), value};
    }
    return found;
  }

  std::vector<std::string> tags() const {
    std::vector<std::string> names;
    for (const auto& [tag, value] : values()) names.push_back(tag);
    return names;
  }

  void draw(const std::string& name) const { Chart(40, 30).save(run_.path(name)).value(); }

  const ScratchFolder scratch_;
  const RunDirectory run_{scratch_ / "run"};
  JobConfig job_;
  Plan plan_;
};

TEST_F(TensorboardPagesTest, AStartShowsConfigurationPlanAndHyperparameters) {
  job_.optimizer.lr = 2e-4;
  write_start_pages(job_, "version: 1\njob: {name: arm}\n", plan_, run_, 7).value();
  const auto found = values();
  EXPECT_THAT(tags(), ElementsAre("_hparams_/experiment", "_hparams_/session_start_info", "configuration", "plan"));
  const auto& [step, value] = found.at("configuration");
  EXPECT_EQ(step, 7);
  EXPECT_EQ(fields_of(value.find(8)->second).find(8)->second, "```yaml\nversion: 1\njob: {name: arm}\n\n```\n");
  EXPECT_THAT(fields_of(found.at("plan").second.find(8)->second).find(8)->second,
              AllOf(StartsWith("```\n"), HasSubstr("learner")));

  const auto content = fields_of(plugin_of(found.at("_hparams_/session_start_info").second).second);
  const auto session = fields_of(content.find(3)->second);
  std::map<std::string, std::multimap<std::uint64_t, std::string>> hparams;
  for (auto [at, end] = session.equal_range(1); at != end; ++at) {
    const auto entry = fields_of(at->second);
    hparams[entry.find(1)->second] = fields_of(entry.find(2)->second);
  }
  EXPECT_EQ(as<double>(hparams.at("optimizer.lr").find(2)->second), 2e-4);
  EXPECT_EQ(as<double>(hparams.at("job.seed").find(2)->second), 42.0);
  EXPECT_EQ(as<double>(hparams.at("training.global_batch_size").find(2)->second), 8.0);
  EXPECT_FALSE(hparams.contains("algorithm.name")) << "of reinforcement learning";
}

TEST_F(TensorboardPagesTest, ReinforcementLearningIsComparedByItsReturnAndAlgorithm) {
  job_.job.kind = JobKind::rl;
  job_.env.id = "CartPole-v1";
  write_start_pages(job_, "", plan_, run_, 0).value();
  const auto content = fields_of(plugin_of(values().at("_hparams_/experiment").second).second);
  const auto experiment = fields_of(content.find(2)->second);
  std::set<std::string> hparams, metrics;
  for (auto [at, end] = experiment.equal_range(4); at != end; ++at)
    hparams.insert(fields_of(at->second).find(1)->second);
  for (auto [at, end] = experiment.equal_range(5); at != end; ++at)
    metrics.insert(fields_of(fields_of(at->second).find(1)->second).find(2)->second);
  EXPECT_THAT(hparams, IsSupersetOf({"algorithm.name", "env.id", "optimizer.lr"}));
  EXPECT_THAT(metrics, ElementsAre("env/return", "eval/return"));
}

TEST_F(TensorboardPagesTest, AnEndShowsThePicturesOfItsStepAndHowItEnded) {
  draw("loss.png");
  draw("eval/step_000040/prediction.png");
  fs::create_directories(run_.path("eval/step_000020"));
  draw("eval/step_000020/earlier.png");
  write_end_pages(job_, run_, 40, 0).value();
  EXPECT_THAT(tags(), ElementsAre("_hparams_/session_end_info", "loss", "prediction"));
  const auto found = values();
  const auto& [step, value] = found.at("prediction");
  const auto image = fields_of(value.find(4)->second);
  EXPECT_EQ(step, 40);
  EXPECT_EQ(as<std::uint64_t>(image.find(1)->second), 30u);
  EXPECT_EQ(as<std::uint64_t>(image.find(2)->second), 40u);
  EXPECT_EQ(image.find(4)->second, text_of(run_.path("eval/step_000040/prediction.png")));
}

TEST_F(TensorboardPagesTest, AStoppedRunsSessionStaysOpen) {
  draw("loss.png");
  write_end_pages(job_, run_, 40, 130).value();
  EXPECT_THAT(tags(), ElementsAre("loss"));
}

TEST_F(TensorboardPagesTest, ALaterPictureJoinsTheRunThatHasEventFiles) {
  draw("eval/step_000040/open_loop.png");
  const std::string png = run_.path("eval/step_000040/open_loop.png");
  add_picture_page(run_, 40, png).value();
  EXPECT_TRUE(fs::is_empty(run_.path("tb"))) << "metrics.sinks has no tensorboard";
  write_start_pages(job_, "", plan_, run_, 0).value();
  add_picture_page(run_, 40, png).value();
  EXPECT_THAT(tags(), ElementsAre("open_loop"));
}

TEST_F(TensorboardPagesTest, ARunWithoutThatSinkIsLeftAloneAndADamagedPictureIsNamed) {
  std::ofstream(run_.path("loss.png")) << "no picture";
  const auto damaged = write_end_pages(job_, run_, 40, 0);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message(), HasSubstr("loss.png: "));
  fs::remove_all(run_.path("tb"));
  job_.metrics.sinks = {"jsonl"};
  write_start_pages(job_, "", plan_, run_, 0).value();
  write_end_pages(job_, run_, 40, 0).value();
  EXPECT_FALSE(fs::exists(run_.path("tb")));
}

}  // namespace
}  // namespace troupe::workers

// Scripted policies over a real (tiny) dataset: what the evaluation measures is known in advance.
#include "workers/inference/evaluate/open_loop.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_dataset.h"
#include "workers/inference/evaluate/open_loop_report.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

/// Plays back what was recorded, plus an offset, and notes what it was shown.
class ScriptedPolicy final : public Policy {
 public:
  ScriptedPolicy(const Dataset& dataset, const DataConfig& data) : dataset_(dataset) {
    info_.name = "scripted";
    info_.views = {"left", "right"};
    info_.views.clear();
    for (const NamedColumn& view : dataset.columns().views) info_.views.push_back(view.name);
    for (const VectorKey& key : dataset.columns().state)
      info_.state.push_back({key.name, static_cast<std::int64_t>(key.width())});
    for (const ActionKey& key : dataset.columns().action)
      info_.action.push_back({key.key.name, static_cast<std::int64_t>(key.key.width())});
    info_.horizon = data.window.action_horizon;
    info_.frames_per_call = {1, static_cast<std::int64_t>(data.window.video_offsets.size()) + 1};
  }

  const PolicyInfo& info() const override { return info_; }
  std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) override {
    std::vector<Result<ActionChunk>> out;
    for (const Observation& o : observations) out.push_back(act(o));
    return out;
  }
  void reset(const std::string& episode) override { resets.push_back(episode); }

  PolicyInfo info_;
  float offset = 0;
  float last_value = 0;  ///< when not 0: the very last value of every chunk
  std::vector<std::string> resets;
  std::vector<std::vector<int>> shown;  ///< red values of the first view's frames, one list per call

 private:
  Result<ActionChunk> act(const Observation& o) {
    long long episode = 0, row = 0;
    EXPECT_EQ(std::sscanf(o.episode.c_str(), "episode %lld row %lld", &episode, &row), 2);
    const NdArray& first = o.images.at(info_.views.front());
    const std::int64_t frames = first.shape.size() == 4 ? first.shape[0] : 1;
    std::vector<int> red;
    for (std::int64_t f = 0; f < frames; ++f) {
      red.push_back(static_cast<int>(
          first.data[static_cast<std::size_t>(f) * first.data.size() / static_cast<std::size_t>(frames)]));
    }
    shown.push_back(red);
    // Which chunk this is: the newest frame's number is its row.
    const std::int64_t begin = red.back();
    const auto table = dataset_.read_table(static_cast<std::size_t>(episode));
    ActionChunk chunk{.rows = info_.horizon, .width = info_.action_width(), .values = {}};
    for (std::int64_t r = begin; r < begin + info_.horizon; ++r) {
      for (const double v : table->vectors.at("action").row(r)) chunk.values.push_back(static_cast<float>(v) + offset);
    }
    float state[3];
    std::memcpy(state, o.state.begin()->second.data.data(), sizeof state);
    EXPECT_FLOAT_EQ(state[0], static_cast<float>(table->vectors.at("observation.state").row(begin)[0]));
    if (last_value != 0) chunk.values.back() = last_value;
    return chunk;
  }
  const Dataset& dataset_;
};

class OpenLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = files_.job();
    open();
  }
  void open() {
    auto set = Dataset::open(job_.data, job_.model, TinyDataset::options());
    set_ = *set;
    policy_.emplace(*set_, job_.data);
  }
  OpenLoopResult run(const OpenLoopOptions& options) {
    return run_open_loop(*policy_, *set_, job_.data, options, TinyDataset::read_clip).value();
  }

  TinyDataset files_;
  JobConfig job_;
  std::shared_ptr<const Dataset> set_;
  std::optional<ScriptedPolicy> policy_;
  const ScratchFolder folder_;
};

TEST_F(OpenLoopTest, APolicyThatReplaysTheRecordingHasNoError) {
  const OpenLoopResult r = run({.episodes = {1, 2}, .windows = 5});
  ASSERT_EQ(r.windows.size(), 5U);
  EXPECT_EQ(r.overall.mse, 0);
  EXPECT_EQ(r.overall.mae, 0);
  EXPECT_EQ(r.overall.non_finite, 0);
  EXPECT_EQ(r.overall.count, 5 * 2 * 4 * 3);  // windows, calls, actions, dimensions
  EXPECT_EQ(r.chunks, 2);
  EXPECT_EQ(r.horizon, 4);
  for (const OpenLoopWindow& w : r.windows) {
    EXPECT_EQ(w.recorded, w.predicted);
    EXPECT_EQ(w.recorded.size(), 2U * 4 * 3);
  }
}

TEST_F(OpenLoopTest, AConstantOffsetIsItsSquareInEveryDimensionAndStep) {
  policy_->offset = 0.5F;
  const OpenLoopResult r = run({.episodes = {0}, .windows = 4});
  ASSERT_EQ(r.by_dimension.size(), 3U);
  ASSERT_EQ(r.by_step.size(), 4U);
  for (const auto* rows : {&r.by_dimension, &r.by_step}) {
    for (const ActionError& e : *rows) {
      EXPECT_NEAR(e.mse, 0.25, 1e-6);
      EXPECT_NEAR(e.mae, 0.5, 1e-6);
    }
  }
  // In normalised units the error is 0.5 * 2 / (q99 - q01).
  const FeatureStatistics& s = set_->statistics().action[0];
  EXPECT_NEAR(r.by_dimension[1].normalised_mse, std::pow(1.0 / (s.q99[1] - s.q01[1]), 2), 1e-6);
}

TEST_F(OpenLoopTest, TheBaselineHoldsTheFirstActionOfEachCall) {
  const OpenLoopResult r = run({.episodes = {0}, .windows = 3});
  // action(row, dim) = 0.25 (row + 1) - dim: held for four rows the error is 0, .25, .5, .75.
  EXPECT_NEAR(r.by_step[0].hold_mse, 0, 1e-12);
  EXPECT_NEAR(r.by_step[3].hold_mse, 0.75 * 0.75, 1e-6);
  EXPECT_NEAR(r.overall.hold_mse, (0.0625 + 0.25 + 0.5625) / 4, 1e-6);
  EXPECT_GT(r.overall.mean_mse, 0);
}

TEST_F(OpenLoopTest, TheMeanOfARelativeKeyIsAddedToTheState) {
  job_.data.embodiment.state_keys = {"state"};
  job_.data.embodiment.action_keys = {"action"};
  // modality.json names the whole columns, so that the action key has a state key of its name.
  files_.write_lines(
      "meta/modality.json",
      {R"({"state": {"arm": {"start": 0, "end": 3}}, "action": {"arm": {"start": 0, "end": 3}},)",
       R"( "video": {"left": {"original_key": "observation.images.left"}, "right": {"original_key": "observation.images.right"}}})"});
  job_.data.embodiment.state_keys = {"arm"};
  job_.data.embodiment.action_keys = {"arm"};
  job_.data.embodiment.relative_action_keys = {"arm"};
  open();
  const OpenLoopResult r = run({.episodes = {0}, .windows = 3});
  EXPECT_TRUE(r.dimensions[0].relative);
  EXPECT_EQ(r.overall.mse, 0) << "recorded and predicted actions are compared as absolute ones";
  // action[t + j] - state[t] = 0.25 (j + 1) - 2 dim, whose mean over j is 0.625 - 2 dim: errors are .375, .125, .125,
  // .375.
  EXPECT_NEAR(r.overall.mean_mse, (0.375 * 0.375 + 0.125 * 0.125) / 2, 1e-5);
}

TEST_F(OpenLoopTest, DimensionsHaveTheNamesOfInfoJson) {
  std::string info = testing::text_of(files_.root() + "/meta/info.json");
  const std::string action = R"("action": {"dtype": "float32", "shape": [3], "names": )";
  ASSERT_NE(info.find(action + "null"), std::string::npos);
  info.replace(info.find(action + "null"), action.size() + 4, action + R"(["pan", "lift", "grip"])");
  files_.write_lines("meta/info.json", {info});
  open();
  const OpenLoopResult r = run({.episodes = {0}, .windows = 1});
  EXPECT_EQ(r.dimensions[1].joint, "lift");
  EXPECT_NE(open_loop_table(r).find("[1] lift "), std::string::npos) << open_loop_table(r);
  EXPECT_NE(open_loop_json(r, {}).find(R"("joint": "grip")"), std::string::npos);
}

TEST_F(OpenLoopTest, TheRobotIsShownTheFramesSinceItsLastCall) {
  (void)run({.episodes = {0}, .windows = 1});
  ASSERT_EQ(policy_->shown.size(), 2U);
  ASSERT_EQ(policy_->shown[0].size(), 1U);
  const int start = policy_->shown[0][0];
  // Offsets 0 and 2 inside a chunk of four rows: the second call brings the frame of the first, the next one and its
  // own.
  EXPECT_EQ(policy_->shown[1], (std::vector<int>{start, start + 2, start + 4}));
  EXPECT_EQ(policy_->resets.size(), 1U);
}

TEST_F(OpenLoopTest, APolicyOfWholeChunksIsShownOneFrameLess) {
  policy_->info_.frames_per_call = {1, 2};
  (void)run({.episodes = {0}, .windows = 1});
  const int start = policy_->shown[0][0];
  EXPECT_EQ(policy_->shown[1], (std::vector<int>{start + 2, start + 4}));
}

TEST_F(OpenLoopTest, ValuesThatAreNotFiniteAreReportedAndLeftOut) {
  policy_->last_value = std::numeric_limits<float>::quiet_NaN();
  const OpenLoopResult r = run({.episodes = {0}, .windows = 2});
  EXPECT_EQ(r.overall.non_finite, 4);  // windows x calls
  EXPECT_EQ(r.by_dimension[2].non_finite, 4);
  EXPECT_EQ(r.by_step[3].non_finite, 4);
  EXPECT_EQ(r.overall.mse, 0);
  EXPECT_EQ(r.overall.count, 2 * 2 * 4 * 3 - 4);
  EXPECT_THAT(open_loop_table(r), HasSubstr("4 NOT FINITE"));
}

TEST_F(OpenLoopTest, TheReportHasEveryNumberAndIsTheSameTwice) {
  policy_->offset = 0.5F;
  const OpenLoopSubject subject{
      .checkpoint = "ckpt",
      .dataset = files_.root(),
      .embodiment = "tiny",
      .options = {{"steps", std::int64_t{16}}, {"cfg_scale", 1.5}, {"sign_gripper", true}, {"dtype", "bf16"}}};
  const OpenLoopResult r = run({.episodes = {0, 2}, .windows = 3});
  const std::string text = open_loop_json(r, subject);
  EXPECT_EQ(text, open_loop_json(run({.episodes = {0, 2}, .windows = 3}), subject));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["options"],
            (nlohmann::json{{"steps", 16}, {"cfg_scale", 1.5}, {"sign_gripper", true}, {"dtype", "bf16"}}));
  EXPECT_EQ(json["windows_evaluated"], 3);
  EXPECT_EQ(json["episodes"], (std::vector<int>{0, 2}));
  EXPECT_NEAR(json["overall"]["mse"].get<double>(), 0.25, 1e-6);
  EXPECT_EQ(json["dimensions"].size(), 3U);
  EXPECT_EQ(json["steps"].size(), 4U);
  EXPECT_EQ(json["windows"][0]["recorded"].size(), 8U);
  EXPECT_EQ(json["windows"][0]["prompt"], "Lift the Cup");
  EXPECT_TRUE(json["overall"]["baselines"].contains("hold_first"));
}

TEST_F(OpenLoopTest, ThePlotIsAPngOfAllDimensions) {
  policy_->last_value = std::numeric_limits<float>::infinity();
  const OpenLoopResult r = run({.episodes = {0}, .windows = 4});
  const std::string path = folder_ / "open_loop.png";
  draw_open_loop(path, r, {.checkpoint = "", .dataset = "", .embodiment = "tiny", .options = {}}).value();
  EXPECT_EQ(text_of(path).substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_GT(std::filesystem::file_size(path), 5000U);
}

TEST_F(OpenLoopTest, AnUnknownEpisodeAndAPolicyThatDoesNotFitAreRefused) {
  auto refused = run_open_loop(*policy_, *set_, job_.data, {.episodes = {9}, .windows = 1}, TinyDataset::read_clip);
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("no usable episode 9"));

  const PolicyInfo fits = policy_->info_;
  const auto expect_refused = [&](const char* text) {
    auto result = run_open_loop(*policy_, *set_, job_.data, {.windows = 1}, TinyDataset::read_clip);
    EXPECT_THAT(result.error().message(), HasSubstr(text));
    policy_->info_ = fits;
  };
  policy_->info_.horizon = 7;
  expect_refused("predicts 7 actions");
  policy_->info_.views.push_back("wrist");
  expect_refused("'wrist'");
  policy_->info_.action[0].width = 2;
  expect_refused("[2]; the dataset gives");
  policy_->info_.frames_per_call = {1, 9};
  expect_refused("takes neither 3 nor 2 frames");
}

TEST_F(OpenLoopTest, WithoutNamedEpisodesTheHeldOutOnesAreTaken) {
  job_.data.eval_episodes = {2};
  open();
  EXPECT_EQ(run({.windows = 1}).episodes, (std::vector<std::int64_t>{2}));
  job_.data.eval_episodes = {};
  open();
  EXPECT_EQ(run({.windows = 1}).episodes, (std::vector<std::int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace troupe::workers

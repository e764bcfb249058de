// The pages that Troupe writes, opened in a browser as their reader would.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PageTest : public RunTest {
 protected:
  ProgramEnd open(const std::string& page) const {
    ProgramOptions how = options();
    how.program = "/usr/bin/python3";
    how.deadline = std::chrono::seconds(120);
    return run_program({std::string(TROUPE_SOURCE_DIR) + "/tests/support/open_page.py", page, shots_.string()}, how);
  }

  /// Null where there is no browser, which is an error where TROUPE_WANT_BROWSER is set.
  nlohmann::json seen_by_browser(const std::string& page) const {
    constexpr int kNoBrowser = 3;
    const ProgramEnd end = open(page);
    const bool is_absent = end.exit_code == kNoBrowser && std::getenv("TROUPE_WANT_BROWSER") == nullptr;
    EXPECT_TRUE(is_absent || end.exit_code == 0) << end.text();
    return end.exit_code == 0 ? nlohmann::json::parse(end.out) : nlohmann::json();
  }

  /// Opens a page and expects what every page keeps; null where there is no browser.
  nlohmann::json look(const std::string& page) const {
    nlohmann::json seen = seen_by_browser(page);
    if (seen.is_null()) return seen;
    EXPECT_THAT(seen["requests"], IsEmpty());
    EXPECT_THAT(seen["errors"], IsEmpty());
    for (const char* width : {"1280", "380"}) {
      EXPECT_LE(seen[width]["scrollWidth"], seen[width]["innerWidth"]) << "it scrolls sideways";
      EXPECT_GT(seen[width]["ink"], 0.01) << "it is blank";
      EXPECT_EQ(seen[width]["pictures"], seen[width]["images"]);
      EXPECT_THAT(seen[width]["broken"], IsEmpty());
      EXPECT_THAT(seen[width]["cut"], IsEmpty()) << "texts that end outside their chart";
      EXPECT_THAT(seen[width]["touching"], IsEmpty()) << "tick labels";
    }
    EXPECT_GT(seen["1280"]["drawn"], 0);
    EXPECT_EQ(seen["without_script"]["drawn"], seen["1280"]["drawn"]) << "curves need the script";
    for (const char* what : {"logTicks", "logLine", "back", "sameTicks", "hidden", "shown"})
      EXPECT_TRUE(seen["touched"].value(what, false)) << what;
    EXPECT_EQ(seen["hovered"]["cursor"], "visible");
    return seen;
  }

  static void expect_sound(const std::string& html) {
    for (const char* outside : {"http://", "https://", "src=\"/", "<link", "@import", "url("})
      EXPECT_THAT(html, Not(HasSubstr(outside)));
  }

 private:
  /// Stays in the build folder, to be looked at.
  const std::filesystem::path shots_ =
      std::filesystem::path(PAGE_SHOTS) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(PageTest, AFineTuningRunLeavesAPageOfItself) {
  expect_end(run_small({"training.steps=4", "eval.every=2", "data.eval_episodes=[4]", "training.clip_grad_norm=0.5"}),
             0, {"report.html"});
  const std::string html = text_of(dir_ / "runs/latest/report.html");
  expect_sound(html);
  for (const char* text : {"RUN COMPLETE", "held out", "<h2>Events</h2>", "<h2>Plan</h2>", "prediction.png",
                           "<mark>  clip_grad_norm: 0.5</mark>", "values differ from presets/dreamzero_tiny.yaml"})
    EXPECT_THAT(html, HasSubstr(text));
  const auto seen = look("runs/latest/report.html");
  if (seen.is_null()) GTEST_SKIP() << "Chromium is not installed: scripts/setup --ci installs it";
  EXPECT_GE(seen["1280"]["images"], 1);
}

TEST_F(PageTest, AReinforcementLearningRunLeavesAPageOfItself) {
  ProgramOptions how = options();
  how.deadline = std::chrono::seconds(200);
  expect_end(run_program({"run", "rl_cartpole_ppo", "training.steps=4", "rollout.steps=32",
                          "training.global_batch_size=64", "training.micro_batch_size=64", "eval.episodes=2"},
                         how),
             0, {"report.html"});
  const std::string html = text_of(dir_ / "runs/latest/report.html");
  expect_sound(html);
  for (const char* text : {"Return of an episode", "environment steps", "more metrics", "<mark>  steps: 4</mark>"})
    EXPECT_THAT(html, HasSubstr(text));
  if (look("runs/latest/report.html").is_null())
    GTEST_SKIP() << "Chromium is not installed: scripts/setup --ci installs it";
}

TEST_F(PageTest, ASweepIsAPageOfItsGroups) {
  ProgramOptions how = options();
  how.deadline = std::chrono::seconds(200);
  expect_end(run_program({"sweep", "rl_cartpole_ppo", "--seeds", "0..1", "--jobs", "2", "optimizer.lr=1e-3,1e-5",
                          "training.steps=4", "rollout.steps=32", "training.global_batch_size=64",
                          "training.micro_batch_size=64", "eval.episodes=2", "metrics.every=1"},
                         how),
             0, {"sweep.html"});
  const std::string page = "runs/rl-cartpole-ppo-sweep-lr/sweep.html";
  expect_sound(text_of(dir_ / page));
  const auto seen = look(page);
  if (seen.is_null()) GTEST_SKIP() << "Chromium is not installed: scripts/setup --ci installs it";
  EXPECT_THAT(seen["hovered"]["values"].dump(), HasSubstr("[")) << "a band has its bounds";
}

TEST_F(PageTest, StatisticsAreAPageWithLinksThatLeadSomewhere) {
  std::filesystem::resize_file(dir_ / "data/videos/chunk-000/observation.images.front/episode_000002.mp4", 100);
  expect_end(troupe({"stats", "data", "--html", "stats.html"}, {{"XDG_CACHE_HOME", dir_ / "cache"}}), 6);
  EXPECT_LE(std::filesystem::file_size(dir_ / "stats.html"), std::uintmax_t{8} << 20);
  expect_sound(text_of(dir_ / "stats.html"));
  const auto seen = look("stats.html");
  if (seen.is_null()) GTEST_SKIP() << "Chromium is not installed: scripts/setup --ci installs it";
  EXPECT_GE(seen["1280"]["videos"], 4);
  EXPECT_THAT(seen["1280"]["links"], ::testing::Contains("#episode-2"));
}

TEST_F(PageTest, ARequestAndABlankPageAreSeen) {
  write("bad.html",
        "<!DOCTYPE html><body><img src=\"http://192.0.2.1/x.png\"><div style=\"width:700px\">x</div></body>");
  const auto seen = seen_by_browser("bad.html");
  if (seen.is_null()) GTEST_SKIP() << "Chromium is not installed: scripts/setup --ci installs it";
  EXPECT_EQ(seen["requests"], nlohmann::json({"http://192.0.2.1/x.png"}));
  EXPECT_GT(seen["380"]["scrollWidth"], 380);
  EXPECT_LT(seen["1280"]["ink"], 0.01);
}

}  // namespace
}  // namespace troupe::app

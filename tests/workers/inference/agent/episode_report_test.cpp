#include "workers/inference/agent/episode_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Ten seeds from 70; those in `solved` succeed, and the return is the seed's place plus `offset`.
PlayedEpisodes played(const std::vector<std::int64_t>& solved, double offset, const std::string& checkpoint) {
  PlayedEpisodes out{
      .checkpoint = checkpoint, .digest = "d", .job = "j", .step = 3, .profile = "", .records = {}, .videos = {}};
  for (std::int64_t i = 0; i < 10; ++i) {
    const bool success = std::find(solved.begin(), solved.end(), i) != solved.end();
    out.records.push_back({.seed = 70 + i,
                           .total_return = static_cast<double>(i) + offset,
                           .length = 5,
                           .success_once = success,
                           .success_at_end = success});
  }
  return out;
}

EvaluationReport report(bool has_success, bool two) {
  EvaluationReport out;
  out.spec.id = "lift";
  out.spec.has_success = has_success;
  out.spec.max_steps = 5;
  out.options = {{"light", "dim"}, {"sparse", "true"}, {"size", "64"}, {"friction", "0.5"}, {"seg", ""}};
  out.version = "1.2";
  out.first = played({0, 1, 2, 3, 4, 5, 6}, 1.0, "a");
  if (two) out.second = played({0}, 0.0, "b");
  return out;
}

TEST(EpisodeReportTest, TheJsonHasEveryEpisodeAndTheInterval) {
  EvaluationReport one = report(true, false);
  one.first.videos[77] = "videos/seed_77.mp4";
  const json j = json::parse(episodes_json(one));
  EXPECT_EQ(j["kind"], "episodes");
  EXPECT_EQ(j["checkpoint"]["step"], 3);
  EXPECT_EQ(j["env"]["options"],
            (json{{"light", "dim"}, {"sparse", true}, {"size", 64}, {"friction", 0.5}, {"seg", ""}}));
  ASSERT_EQ(j["episodes"].size(), 10u);
  EXPECT_EQ(j["episodes"][7], (json{{"seed", 77},
                                    {"return", 8.0},
                                    {"length", 5},
                                    {"success_once", false},
                                    {"success_at_end", false},
                                    {"video", "videos/seed_77.mp4"}}));
  EXPECT_EQ(j["results"]["successes"], 7);
  EXPECT_NEAR(j["results"]["wilson_95"][0].get<double>(), wilson_interval(7, 10).low, 1e-12);
  EXPECT_FALSE(j.contains("compare"));
  EXPECT_EQ(episodes_json(one), episodes_json(one));
}

TEST(EpisodeReportTest, OptionsAreReportedOfDreamZeroAlone) {
  EvaluationReport two = report(true, true);
  two.first.options = described({.sampler = "euler", .steps = 4});
  const json j = json::parse(episodes_json(two));
  EXPECT_EQ(j["options"]["sampler"], "euler");
  EXPECT_EQ(j["options"]["steps"], 4);
  EXPECT_FALSE(j["compare"].contains("options"));
}

TEST(EpisodeReportTest, WithoutSuccessNothingIsSaidOfIt) {
  const json j = json::parse(episodes_json(report(false, true)));
  EXPECT_FALSE(j["episodes"][0].contains("success_once"));
  EXPECT_FALSE(j["results"].contains("successes"));
  EXPECT_FALSE(j["compare"]["difference"].contains("success_once"));
  EXPECT_THAT(episodes_table(report(false, true)),
              AllOf(Not(HasSubstr("McNemar")),
                    HasSubstr("Wilcoxon's signed-rank test, exact: p = 0.00195 (10 of 10 seeds differ)")))
      << "all ten differences are positive: 2 / 2^10";
}

TEST(EpisodeReportTest, TwoPoliciesAreComparedSeedBySeed) {
  const EvaluationReport two = report(true, true);
  const json difference = json::parse(episodes_json(two))["compare"]["difference"];
  EXPECT_EQ(difference["success_once"]["only_first"], 6);
  EXPECT_EQ(difference["success_once"]["only_second"], 0);
  EXPECT_NEAR(difference["success_once"]["p"].get<double>(), 2.0 / 64, 1e-12);
  EXPECT_NEAR(difference["return"]["difference"].get<double>(), 1, 1e-12);
  const std::string table = episodes_table(two);
  EXPECT_THAT(table, HasSubstr("A 7/10 = 70.0%   B 1/10 = 10.0%   A - B +60.0 points"));
  EXPECT_THAT(
      table, AllOf(HasSubstr("McNemar's exact test: p = 0.031"), HasSubstr("(only A 6, only B 0, both 1, neither 3)")));
}

TEST(EpisodeReportTest, WhatOneOfTwoLostIsComparedWithNothing) {
  EvaluationReport two = report(true, true);
  two.first.records[0] = {.seed = 70, .lost = "the wheel came off"};
  const json j = json::parse(episodes_json(two));
  EXPECT_EQ(j["episodes"][0], (json{{"seed", 70}, {"lost", "the wheel came off"}}));
  EXPECT_EQ(j["results"]["episodes"], 9);
  EXPECT_EQ(j["results"]["eval/lost"], 1);
  const json pairs = j["compare"]["difference"]["success_once"];
  EXPECT_EQ(pairs["both"].get<int>() + pairs["only_first"].get<int>() + pairs["only_second"].get<int>() +
                pairs["neither"].get<int>(),
            9);
  EXPECT_THAT(episodes_table(two), HasSubstr("lost      1/10 episodes"));
}

TEST(EpisodeReportTest, TheMarkdownNamesTheSeedsThatFailed) {
  EvaluationReport one = report(true, false);
  one.first.videos[77] = "videos/seed_77.mp4";
  const std::string text = episodes_markdown(one);
  EXPECT_THAT(text, HasSubstr("Seeds without success: [77](videos/seed_77.mp4), 78, 79"));
  EXPECT_THAT(text, HasSubstr("success   7/10"));
  EXPECT_THAT(text, HasSubstr("seeds 70 to 79"));
}

}  // namespace
}  // namespace troupe::workers

#include "workers/report/compare/comparison_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/report/compare/made_up_runs.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::map<std::string, std::map<std::int64_t, double>> loss(double held_out) {
  return {{"train/loss", {{1, 2 * held_out}, {2, held_out}}}, {"eval/loss", {{2, held_out}}}};
}

/// Two learning rates with three seeds each; the second rate is better by 1, 2 and 3.
std::vector<RunGroup> two_groups() {
  std::vector<ComparedRun> runs;
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(made_up_run("job-seed" + std::to_string(seed) + "-lr0.1", seed, "0.1", loss(10)));
    runs.push_back(
        made_up_run("job-seed" + std::to_string(seed) + "-lr0.2", seed, "0.2", loss(9 - static_cast<double>(seed))));
  }
  return group_runs(std::move(runs));
}

TEST(RunGroupTest, RunsThatDifferByNameAndSeedAloneAreOneGroup) {
  const auto groups = two_groups();
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].label, "job-lr0.1");
  EXPECT_EQ(groups[1].label, "job-lr0.2");
  EXPECT_THAT(groups[0].runs, SizeIs(3));
  EXPECT_EQ(groups[1].runs[2].job.job.seed, 2);
  EXPECT_THAT(groups[1].differing, ElementsAre(std::pair<const std::string, std::string>("optimizer.lr", "0.2")));
}

TEST(RunGroupTest, GroupsOfOneNameAreToldApartByTheirSettings) {
  const auto groups = group_runs({made_up_run("job", 0, "0.1", loss(1)), made_up_run("job", 0, "0.2", loss(1))});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[1].label, "job (optimizer.lr=0.2)");
}

TEST(ComparisonTablesTest, AGroupHasTheInterquartileMeanAndItsInterval) {
  const TextTable table = group_table(two_groups());
  EXPECT_THAT(table.head, ElementsAre("group", "runs", "held-out loss", "training loss", "steps", "wall seconds"));
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[0], ElementsAre("job-lr0.1", "3", "10", "10", "2", "1"));
  EXPECT_THAT(table.rows[1], ElementsAre("job-lr0.2", "3", "8 [7 to 9]", "8 [7 to 9]", "2", "1"));
}

// Differences -1, -2, -3: mean -2, Student's half width 4.302653 sqrt(1 / 3); all three negative: p = 2 / 2^3.
TEST(ComparisonTablesTest, GroupsAreTestedSeedBySeed) {
  const TextTable table = paired_table(two_groups());
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[0],
              ElementsAre("job-lr0.2", "held-out loss", "3 seeds", "-2", "-4.484 to 0.4841", "0.25", "Wilcoxon"));
}

TEST(ComparisonTablesTest, ASeedThatOnlyOneGroupHasIsNoPair) {
  auto groups = two_groups();
  groups[1].runs.erase(groups[1].runs.begin());
  EXPECT_THAT(paired_table(groups).rows[0][2], "2 seeds");
  groups[1].runs.erase(groups[1].runs.begin());
  EXPECT_THAT(paired_table(groups).rows, IsEmpty()) << "one pair is no test";
}

// Of four seeds both policies solve one; the second alone solves the others: p = 2 / 2^3.
TEST(ComparisonTablesTest, SingleRunsAreTestedByTheEpisodesTheyBothPlayed) {
  auto groups = group_runs({made_up_run("a", 0, "0.1", loss(1)), made_up_run("b", 0, "0.2", loss(2))});
  EXPECT_THAT(paired_table(groups).rows, IsEmpty());
  groups[0].runs[0].episodes =
      PlayedSeeds{"reach", {{1, 0}, {2, 0}, {3, 0}, {4, 1}}, {{1, false}, {2, false}, {3, false}, {4, true}}};
  groups[1].runs[0].episodes =
      PlayedSeeds{"reach", {{1, 1}, {2, 1}, {3, 1}, {4, 1}}, {{1, true}, {2, true}, {3, true}, {4, true}}};
  const TextTable table = paired_table(groups);
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[0][1], "return of an episode");
  EXPECT_THAT(table.rows[0][3], "+0.75");
  EXPECT_THAT(table.rows[1][1], "success of an episode");
  EXPECT_THAT(table.rows[1][3], "+0.75");
  EXPECT_THAT(table.rows[1][5], "0.25");
  groups[1].runs[0].episodes->env = "lift";
  EXPECT_THAT(paired_table(groups).rows, IsEmpty()) << "another environment";
}

TEST(ComparisonTablesTest, SingleFineTuningRunsAreTestedByTheRecordedEpisodes) {
  auto groups = group_runs({made_up_run("a", 0, "0.1", loss(1)), made_up_run("b", 0, "0.2", loss(2))});
  groups[0].runs[0].held_against = HeldAgainst{"data", {{3, 0.4}, {4, 0.5}, {7, 0.6}}};
  groups[1].runs[0].held_against = HeldAgainst{"data", {{3, 0.3}, {4, 0.3}, {7, 0.3}, {8, 1}}};
  const TextTable table = paired_table(groups);
  ASSERT_THAT(table.rows, SizeIs(1));
  EXPECT_THAT(table.rows[0], ElementsAre("b", "open-loop mse of an episode", "3 episodes", "-0.2", "-0.4484 to 0.04841",
                                         "0.25", "Wilcoxon"));
  groups[1].runs[0].held_against->windows = "other data";
  EXPECT_THAT(paired_table(groups).rows, IsEmpty());
}

TEST(ComparisonTablesTest, OnlyWhatDiffersIsInTheTableOfSettings) {
  const TextTable table = difference_table(two_groups());
  EXPECT_THAT(table.head, ElementsAre("key", "job-lr0.1", "job-lr0.2"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("optimizer.lr", "0.1", "0.2")));
}

TEST(ComparisonTablesTest, MarkdownIsAlignedForATerminal) {
  EXPECT_EQ(markdown_table({.head = {"run", "seed"}, .rows = {{"a-long-name", "1"}, {"b", "200"}}}),
            "| run         | seed |\n"
            "| ----------- | ---: |\n"
            "| a-long-name |    1 |\n"
            "| b           |  200 |\n");
  EXPECT_EQ(markdown_table({.head = {"run"}, .rows = {}}), "");
}

}  // namespace
}  // namespace troupe::workers

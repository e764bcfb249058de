#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <string>

#include "env/arm7/arm7_model.h"
#include "env/arm7/arm7_task.h"

namespace troupe::env {
namespace {

constexpr std::uint64_t kSeeds = 2000;
constexpr std::array kTasks = {Arm7Task::reach, Arm7Task::push, Arm7Task::lift, Arm7Task::pick_place};

/// The place that `of` names in a task's episodes.
void expect_within(Arm7Task task, Arm7Vec Arm7Episode::*of, const Arm7Vec& low, const Arm7Vec& high) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Arm7Episode episode = make_arm7_episode(task, seed);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_GE((episode.*of)[k], low[k]);
      EXPECT_LE((episode.*of)[k], high[k]);
    }
  }
}

TEST(Arm7EpisodeTest, GoalsOfReachLieInTheirBox) {
  expect_within(Arm7Task::reach, &Arm7Episode::goal, {0.35, -0.3, 0.05}, {0.65, 0.3, 0.4});
}

TEST(Arm7EpisodeTest, CubesLieOnTheTableInFrontOfTheArm) {
  expect_within(Arm7Task::lift, &Arm7Episode::cube, {0.4, -0.15, 0.02}, {0.6, 0.15, 0.02});
}

TEST(Arm7EpisodeTest, GoalsOfPushAreTenToTwentyFiveCentimetresAway) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto e = make_arm7_episode(Arm7Task::push, seed);
    const double away = std::hypot(e.goal[0] - e.cube[0], e.goal[1] - e.cube[1]);
    EXPECT_GE(away, 0.10 - 1e-12);
    EXPECT_LE(away, 0.25);
    EXPECT_EQ(e.goal[2], 0);
  }
}

TEST(Arm7EpisodeTest, GoalsOfPickPlaceLieAboveTheCubesPlaces) {
  expect_within(Arm7Task::pick_place, &Arm7Episode::goal, {0.4, -0.15, 0.02}, {0.6, 0.15, 0.3});
}

TEST(Arm7EpisodeTest, JointsBeginAroundHomeWithTheStatedSpread) {
  double sum = 0, squares = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto e = make_arm7_episode(Arm7Task::lift, seed);
    for (std::size_t j = 0; j < kArm7Joints; ++j) {
      const double off = e.joints[j] - kArm7Home[j];
      sum += off;
      squares += off * off;
    }
  }
  const double n = static_cast<double>(kSeeds * kArm7Joints);
  EXPECT_NEAR(sum / n, 0, 0.001);
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 0.001);
}

TEST(Arm7EpisodeTest, ASeedNamesOneEpisode) {
  const auto a = make_arm7_episode(Arm7Task::push, 42), b = make_arm7_episode(Arm7Task::push, 42);
  const auto c = make_arm7_episode(Arm7Task::push, 43);
  EXPECT_EQ(a.joints, b.joints);
  EXPECT_EQ(a.goal, b.goal);
  EXPECT_NE(a.goal, c.goal);
}

TEST(Arm7EpisodeTest, EveryTaskHasEightInstructions) {
  for (const Arm7Task task : kTasks) {
    std::set<std::string> texts;
    for (std::uint32_t phrase = 0; phrase < kArm7Phrases; ++phrase)
      texts.insert(arm7_instruction(task, {.phrase = phrase}));
    for (const std::string& text : texts) EXPECT_LE(text.size(), 64U - 6) << "room for the longest colour";
    EXPECT_EQ(texts.size(), kArm7Phrases) << enum_name(task);
  }
}

TEST(Arm7EpisodeTest, EveryPhraseAndColourTurnsUp) {
  std::set<std::uint32_t> phrases, colors;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto e = make_arm7_episode(Arm7Task::lift, seed);
    phrases.insert(e.phrase);
    colors.insert(e.color);
  }
  EXPECT_EQ(phrases.size(), kArm7Phrases);
  EXPECT_EQ(colors.size(), arm7_colors().size());
}

TEST(Arm7EpisodeTest, AnInstructionNamesTheCubesColour) {
  for (const Arm7Task task : {Arm7Task::push, Arm7Task::lift, Arm7Task::pick_place}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto e = make_arm7_episode(task, seed);
      EXPECT_THAT(arm7_instruction(task, e), ::testing::HasSubstr(std::string(arm7_colors()[e.color].name)));
    }
  }
}

}  // namespace
}  // namespace troupe::env

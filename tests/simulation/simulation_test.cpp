// The controller under scripted networks, clocks and deaths (CONTRIBUTING.md).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "tests/simulation/schedule.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;

/// A folder in memory where there is one: a schedule writes a dozen small files.
std::string scratch_root() {
  return std::getenv("TROUPE_SIMULATION_FOLDER") ? std::getenv("TROUPE_SIMULATION_FOLDER") : "/dev/shm";
}

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What many schedules came to.
struct Sum {
  /// Deliveries, and faults that struck, of a schedule, and its seed.
  std::pair<std::int64_t, std::uint64_t> fewest{1 << 30, 0}, fewest_faults{1 << 30, 0};
  std::chrono::milliseconds lasted{0};
  std::map<int, int> codes;
  SeenRights rights;
  std::atomic<int> broken{0};

  void add(std::uint64_t seed, const Outcome& outcome) {
    fewest = std::min(fewest, {outcome.deliveries, seed});
    fewest_faults = std::min(fewest_faults, {outcome.faults, seed});
    lasted += outcome.lasted;
    ++codes[outcome.exit_code];
    rights.add(outcome.rights);
  }
};

std::string verdict(const Schedule& schedule, const Outcome& outcome, const std::string& folder) {
  const Schedule least = shrunk(schedule, folder);
  const Outcome again = simulate(least, folder);
  // A schedule has one history, unless others touch its files.
  const std::string repeated = again.breaches.empty()
                                   ? "it breaks no rule when it is repeated: did something else change " + folder + "?"
                                   : fmt::format("{}", fmt::join(again.breaches, "\n  "));
  return fmt::format("{}\n  {}\nleast: {}\n  {}\n  {}", to_text(schedule), fmt::join(outcome.breaches, "\n  "),
                     to_text(least), fmt::join(again.said, "\n  "), repeated);
}

struct SimulationTest : ::testing::Test {
  void SetUp() override { log::configure("simulation", "", log::Level::error); }
  const ScratchFolder scratch{scratch_root()};
};

// What schedules have found in the product, as small as it gets.

TEST_F(SimulationTest, WhatALostNodeHostedNeverMovesToOneThatIsSuspectSinceTheSameLook) {
  const auto silence = Fault{.kind = Fault::Kind::silence_node, .at = 37s, .lasts = 13s, .target = 0};
  for (Fault kill{.kind = Fault::Kind::kill_node, .at = 43s, .lasts = 6s, .target = 1}; kill.at < 46s; kill.at += 100ms)
    EXPECT_THAT(simulate({.seed = 169, .faults = {silence, kill}}, scratch / "0").breaches, ::testing::IsEmpty())
        << kill.at.count();
}

TEST_F(SimulationTest, AnActorThatCannotBeKilledIsNotTheOneThatAScaleLeaves) {
  for (std::uint32_t target = 1; target < 8 * 16; target += 16) {
    const auto unkillable = Fault{.kind = Fault::Kind::unkillable, .at = 15s, .lasts = 60s, .target = target};
    const auto scale = Fault{.kind = Fault::Kind::scale, .at = 20s, .target = 0};
    EXPECT_THAT(simulate({.seed = 2, .faults = {unkillable, scale}}, scratch / "0").breaches, ::testing::IsEmpty())
        << target;
  }
}

TEST_F(SimulationTest, ADamagedCheckpointCostsTheStepsSinceTheOneBefore) {
  const auto damage = Fault{.kind = Fault::Kind::damage, .at = 45s, .lasts = 0s, .target = 0};
  const Outcome outcome = simulate({.seed = 1, .faults = {damage}}, scratch / "0");
  EXPECT_THAT(outcome.breaches, ::testing::IsEmpty());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.said, ::testing::Contains(::testing::HasSubstr("all ranks go back to step")));
}

/// Of TROUPE_VIRTUAL_HOURS.
TEST_F(SimulationTest, OneLongJobBreaksNoRule) {
  const std::chrono::hours hours(number("TROUPE_VIRTUAL_HOURS", 12));
  const Schedule schedule = long_schedule(number("TROUPE_FIRST_SCHEDULE", 1), hours);
  const Outcome outcome = simulate(schedule, scratch / "0");
  fmt::print("{} faults in {:.1f} virtual hours, {} deliveries\n", schedule.faults.size(),
             static_cast<double>(outcome.lasted.count()) / 3.6e6, outcome.deliveries);
  EXPECT_THAT(outcome.breaches, ::testing::IsEmpty()) << fmt::format("{}", fmt::join(outcome.said, "\n"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GE(outcome.lasted, hours * 9 / 10);
}

/// TROUPE_SCHEDULES many, from TROUPE_FIRST_SCHEDULE on, TROUPE_THREADS at a time.
TEST_F(SimulationTest, NoScheduleBreaksARule) {
  const std::uint64_t first = number("TROUPE_FIRST_SCHEDULE", 1), count = number("TROUPE_SCHEDULES", 2000);
  Sum sum;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = first;
  const auto work = [&](std::uint64_t thread) {
    const std::string folder = scratch / std::to_string(thread);
    for (std::uint64_t seed = next++; seed < first + count && sum.broken < 5; seed = next++) {
      const Schedule schedule = schedule_of(seed);
      const Outcome outcome = simulate(schedule, folder);
      const std::string bad = outcome.breaches.empty() ? "" : verdict(schedule, outcome, folder);
      const std::lock_guard lock(mutex);
      sum.add(seed, outcome);
      if (bad.empty()) continue;
      ++sum.broken;
      ADD_FAILURE() << bad;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread < number("TROUPE_THREADS", 1); ++thread) threads.emplace_back(work, thread);
  work(0);
  for (std::thread& thread : threads) thread.join();
  std::string text;
  for (const auto& [code, times] : sum.codes) text += fmt::format(" {} x exit {}", times, code);
  fmt::print("{} schedules, {:.1f} virtual hours, at least {} deliveries (seed {}) and {} faults (seed {}) each;{}\n",
             count, static_cast<double>(sum.lasted.count()) / 3.6e6, sum.fewest.first, sum.fewest.second,
             sum.fewest_faults.first, sum.fewest_faults.second, text);
  if (sum.broken > 0) return;
  EXPECT_GE(sum.fewest.first, 200) << to_text(schedule_of(sum.fewest.second));
  EXPECT_GE(sum.fewest_faults.first, 3) << to_text(schedule_of(sum.fewest_faults.second));
  if (count < 2000) return;
  EXPECT_THAT(sum.rights.missing(), ::testing::IsEmpty()) << "rights that no schedule has used";
}

}  // namespace
}  // namespace troupe::testing

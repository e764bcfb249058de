// The controller under scripted networks, clocks and deaths (CONTRIBUTING.md).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"
#include "tests/simulation/schedule.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {
namespace {

/// A folder in memory where there is one: a schedule writes a dozen small files.
std::string scratch_root() {
  return std::getenv("TROUPE_SIMULATION_FOLDER") ? std::getenv("TROUPE_SIMULATION_FOLDER") : "/dev/shm";
}

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// TROUPE_SCHEDULES many, from TROUPE_FIRST_SCHEDULE on.
TEST(SimulationTest, NoScheduleBreaksARule) {
  log::configure("simulation", "", log::Level::error);
  const std::string folder = fmt::format("{}/troupe-simulation-{}", scratch_root(), ::getpid());
  const std::uint64_t first = number("TROUPE_FIRST_SCHEDULE", 1), count = number("TROUPE_SCHEDULES", 2000);
  std::int64_t fewest = 1 << 30;
  std::chrono::milliseconds lasted{0};
  std::map<int, int> codes;
  int broken = 0;
  for (std::uint64_t seed = first; seed < first + count && broken < 5; ++seed) {
    const Schedule schedule = schedule_of(seed);
    const Outcome outcome = simulate(schedule, folder);
    fewest = std::min(fewest, outcome.deliveries);
    lasted += outcome.lasted;
    ++codes[outcome.exit_code];
    if (outcome.breaches.empty()) continue;
    ++broken;
    const Schedule least = shrunk(schedule, folder);
    const Outcome again = simulate(least, folder);
    ADD_FAILURE() << fmt::format("{}\n  {}\nleast: {}\n  {}\n  {}", to_text(schedule),
                                 fmt::join(outcome.breaches, "\n  "), to_text(least), fmt::join(again.said, "\n  "),
                                 fmt::join(again.breaches, "\n  "));
  }
  std::filesystem::remove_all(folder);
  EXPECT_GE(fewest, 200);
  std::string text;
  for (const auto& [code, times] : codes) text += fmt::format(" {} x exit {}", times, code);
  fmt::print("{} schedules, {:.1f} virtual hours, at least {} deliveries each;{}\n", count,
             static_cast<double>(lasted.count()) / 3.6e6, fewest, text);
}

}  // namespace
}  // namespace troupe::testing

#include "tests/simulation/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace troupe::testing {

namespace {

using Kind = Fault::Kind;
using std::chrono::milliseconds;

constexpr std::array kNames{"kill_actor",  "hang_actor",   "kill_node",  "stop_node",       "cut_node",
                            "deafen_node", "silence_node", "rival_node", "stop_controller", "bad_wire",
                            "fail_write",  "hang_write",   "scale",      "terminate",       "restart"};

/// Short ones pass unseen, middling ones are a suspicion, long ones outlast the lease.
milliseconds some_time(std::mt19937_64& draw) {
  constexpr std::array<int, 4> kSeconds{1, 4, 12, 25};
  return milliseconds(kSeconds[draw() % kSeconds.size()] * 1000 + static_cast<int>(draw() % 2000));
}

}  // namespace

Schedule schedule_of(std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  Schedule schedule{.seed = seed};
  // What is asked for belongs to every schedule.
  schedule.faults.push_back(
      {.kind = Kind::scale, .at = milliseconds(1000 + draw() % 40'000), .target = static_cast<std::uint32_t>(draw())});
  const std::size_t count = 3 + draw() % 4;
  for (std::size_t i = 0; i < count; ++i) {
    // Ends of the whole job are rarer than all else, and come late.
    const bool may_end = draw() % 4 == 0;
    const auto kind = static_cast<Kind>(draw() % (may_end ? kNames.size() : kNames.size() - 2));
    const milliseconds earliest(kind == Kind::terminate || kind == Kind::restart ? 30'000 : 0);
    schedule.faults.push_back({.kind = kind,
                               .at = earliest + milliseconds(draw() % 60'000),
                               .lasts = some_time(draw),
                               .target = static_cast<std::uint32_t>(draw())});
  }
  std::sort(schedule.faults.begin(), schedule.faults.end(), [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return schedule;
}

std::string to_text(const Schedule& schedule) {
  std::string text = fmt::format("seed {}:", schedule.seed);
  for (const Fault& fault : schedule.faults) {
    text += fmt::format(" {} {} at {:.1f} s for {:.1f} s;", kNames[static_cast<std::size_t>(fault.kind)], fault.target,
                        static_cast<double>(fault.at.count()) / 1000, static_cast<double>(fault.lasts.count()) / 1000);
  }
  return text;
}

Schedule shrunk(Schedule schedule, const std::string& folder) {
  for (std::size_t i = 0; i < schedule.faults.size();) {
    Schedule fewer = schedule;
    fewer.faults.erase(fewer.faults.begin() + static_cast<std::ptrdiff_t>(i));
    if (simulate(fewer, folder).breaches.empty()) {
      ++i;
    } else {
      schedule = std::move(fewer);
    }
  }
  return schedule;
}

}  // namespace troupe::testing

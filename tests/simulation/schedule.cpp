#include "tests/simulation/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace troupe::testing {

namespace {

using Kind = Fault::Kind;
using std::chrono::milliseconds;

constexpr std::array kNames{"kill_actor",   "hang_actor",   "kill_node",       "stop_node", "cut_node",   "deafen_node",
                            "silence_node", "rival_node",   "stop_controller", "bad_wire",  "fail_write", "hang_write",
                            "scale",        "late_message", "hang_start",      "slow_end",  "unkillable", "stranger",
                            "new_node",     "ask",          "terminate",       "restart",   "fatal",      "damage"};
/// Kinds from `terminate` to `fatal` end the whole job: they are rarer than all else.
constexpr auto kFirstEnd = static_cast<std::size_t>(Kind::terminate), kEnd = static_cast<std::size_t>(Kind::damage);

/// Short ones pass unseen, middling ones are a suspicion, long ones outlast the lease.
milliseconds some_time(std::mt19937_64& draw) {
  constexpr std::array<int, 4> kSeconds{1, 4, 12, 25};
  return milliseconds(kSeconds[draw() % kSeconds.size()] * 1000 + static_cast<int>(draw() % 2000));
}

Fault some_fault(std::mt19937_64& draw, bool may_end) {
  const auto kind = static_cast<Kind>(draw() % (may_end ? kEnd : kFirstEnd));
  return {.kind = kind,
          .at = milliseconds(draw() % 60'000),
          .lasts = some_time(draw),
          .target = static_cast<std::uint32_t>(draw())};
}

bool may_end_job(const Fault& fault) {
  return static_cast<std::size_t>(fault.kind) >= kFirstEnd || fault.kind == Kind::unkillable ||
         fault.is_of_the_whole_disk();
}

void sort(std::vector<Fault>& faults) {
  std::sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

}  // namespace

Schedule schedule_of(std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  Schedule schedule{.seed = seed};
  if (seed % 8 == 3) schedule.makers = Schedule::Makers::encoders;
  if (seed % 8 == 6) schedule.makers = Schedule::Makers::simulators;
  schedule.is_on_disk = seed % 32 == 9;
  // most of what a schedule costs is its checkpoints
  if (seed % 4 != 0) schedule.every = 10;
  // What is asked for belongs to every schedule.
  schedule.faults.push_back(
      {.kind = Kind::scale, .at = milliseconds(1000 + draw() % 40'000), .target = static_cast<std::uint32_t>(draw())});
  const std::size_t count = 3 + draw() % 4;
  std::vector<Fault> ends;
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault = some_fault(draw, draw() % 4 == 0);
    while (i < 2 && may_end_job(fault)) fault = some_fault(draw, false);
    (may_end_job(fault) ? ends : schedule.faults).push_back(fault);
  }
  // By then three faults have struck, and 200 messages have been delivered.
  sort(schedule.faults);
  const milliseconds late = std::max(schedule.faults[2].at, milliseconds(40'000));
  for (Fault& end : ends) {
    end.at = late + end.at / 2;
    schedule.faults.push_back(end);
  }
  if (draw() % 8 == 0)
    schedule.faults.push_back({.kind = Kind::damage,
                               .at = milliseconds(20'000 + draw() % 60'000),
                               .target = static_cast<std::uint32_t>(draw())});
  sort(schedule.faults);
  return schedule;
}

Schedule long_schedule(std::uint64_t seed, std::chrono::hours lasts) {
  std::mt19937_64 draw(seed);
  // More than a curve keeps (RunCurve::kMostPoints); a checkpoint comes often enough for one fault in ten minutes.
  Schedule schedule{.seed = seed, .steps = 21'600, .every = 60};
  schedule.step = std::chrono::duration_cast<milliseconds>(lasts) / schedule.steps;
  schedule.tick = milliseconds(1000);
  for (milliseconds at{0}; at < lasts; at += std::chrono::minutes(10)) {
    Fault fault = some_fault(draw, false);
    // an actor that is never started again makes no long job
    if (fault.kind == Kind::unkillable || fault.kind == Kind::new_node || fault.kind == Kind::fail_write) continue;
    // nor does one that outlives it, nor a disk that hangs
    if (fault.kind == Kind::slow_end || fault.kind == Kind::hang_write) fault.target |= 1;
    fault.at += at;
    schedule.faults.push_back(fault);
  }
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

void SeenRights::add(const SeenRights& other) {
  for (std::size_t row = 0; row < sent.size(); ++row) {
    for (std::size_t i = 0; i < kMost; ++i) {
      sent[row][i] |= other.sent[row][i];
      taken[row][i] |= other.taken[row][i];
    }
  }
}

std::vector<std::string> SeenRights::missing() const {
  std::vector<std::string> missing;
  for (std::size_t row = 0; row < sent.size(); ++row) {
    const actors::ActorRow& of = actors::kActors[row];
    for (std::size_t i = 0; i < of.sends.size(); ++i) {
      if (!sent[row][i]) missing.push_back(fmt::format("{} sends {}", of.actor, comm::name_of(of.sends[i])));
    }
    for (std::size_t i = 0; i < of.takes.size(); ++i) {
      if (!taken[row][i]) missing.push_back(fmt::format("{} takes {}", of.actor, comm::name_of(of.takes[i])));
    }
  }
  return missing;
}

}  // namespace troupe::testing

#include <filesystem>

#include "tests/simulation/world.h"

namespace troupe::testing {

World::World(const Schedule& schedule, std::string folder)
    : schedule_(schedule),
      folder_(std::move(folder)),
      draw_(schedule.seed ^ 0x9E3779B97F4A7C15u),
      wire_(clock_, draw_, [this](const std::string& what) { breach(what); }),
      judge_([this](const std::string& what) { breach(what); }),
      output_(clock_, outcome_.said, judge_) {}

void World::breach(const std::string& what) {
  constexpr std::size_t kMost = 20;
  if (outcome_.breaches.size() == kMost) return;
  outcome_.breaches.push_back(fmt::format("{:.3f} s: {}", SimClock::seconds_to(clock_.now()), what));
}

bool World::go_on(SimTime until) {
  constexpr std::int64_t kMostAtOnce = 1'000'000;
  const SimTime before = clock_.now();
  if (!clock_.step(until)) return false;
  steps_at_once_ = clock_.now() == before ? steps_at_once_ + 1 : 0;
  if (steps_at_once_ == kMostAtOnce)
    breach(fmt::format("{} tasks ran at one moment: time does not go on", kMostAtOnce));
  return steps_at_once_ < kMostAtOnce;
}

Outcome World::run() {
  std::filesystem::remove_all(folder_);
  run_ = RunDirectory::create(folder_, "sim", "run").value();
  db_ = std::move(StateDb::open(schedule_.is_on_disk ? run_.state_db() : ":memory:")).value();
  if (schedule_.is_on_disk) record_job();
  if (schedule_.is_on_disk && loses_events()) {
    std::filesystem::create_directory(run_.events());
    clock_.after(10s, [this] { std::filesystem::remove(run_.events()); });
  }
  begin_controller();
  for (std::size_t n = 1; n < kNodes; ++n) begin_node(n);
  for (const Fault& fault : schedule_.faults) clock_.after(fault.at, [this, fault] { strike(fault); });
  watch();
  const SimTime begin = clock_.now();
  const SimTime deadline = begin + 2h + 2 * schedule_.steps * schedule_.step;
  while (!exit_code_ && outcome_.breaches.empty() && go_on(deadline)) continue;
  outcome_.lasted = std::chrono::duration_cast<Millis>(clock_.now() - begin);
  if (exit_code_) {
    judge_end();
  } else if (outcome_.breaches.empty()) {
    breach(fmt::format("the job did not end: {}", service_->job().status_json(clock_.now())));
  }
  outcome_.deliveries = wire_.deliveries;
  outcome_.exit_code = exit_code_.value_or(-1);
  return outcome_;
}

Outcome simulate(const Schedule& schedule, const std::string& folder) { return World(schedule, folder).run(); }

}  // namespace troupe::testing

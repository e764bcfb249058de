#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "tests/simulation/world.h"
#include "workers/checkpoint/commit.h"

namespace troupe::testing {

Outcome World::run() {
  std::filesystem::remove_all(folder_);
  db_ = std::move(StateDb::open(":memory:")).value();
  run_ = RunDirectory::create(folder_, "sim", "run").value();
  begin_controller();
  for (std::size_t n = 1; n < kNodes; ++n) begin_node(n);
  for (const Fault& fault : schedule_.faults) clock_.after(fault.at, [this, fault] { strike(fault); });
  watch_twins();
  const SimTime deadline = clock_.now() + std::chrono::hours(2);
  const SimTime begin = clock_.now();
  while (!exit_code_ && clock_.step(deadline)) continue;
  if (!exit_code_) {
    breach(fmt::format("the job did not end: {}", service_->job().status_json(clock_.now())));
  } else {
    outcome_.lasted = std::chrono::duration_cast<Millis>(clock_.now() - begin);
    judge_end();
  }
  outcome_.deliveries = wire_.deliveries;
  outcome_.exit_code = exit_code_.value_or(-1);
  return outcome_;
}

void World::strike(const Fault& fault) {
  using Of = Fault::Kind;
  if (exit_code_) return;
  const std::size_t host = 1 + fault.target % (kNodes - 1);
  const SimTime until = clock_.now() + fault.lasts;
  const auto some_actor = [&]() -> std::shared_ptr<SimActor> {
    if (actors_.empty()) return nullptr;
    return std::next(actors_.begin(), static_cast<std::ptrdiff_t>(fault.target % actors_.size()))->second;
  };
  switch (fault.kind) {
    case Of::kill_actor:
      if (const auto actor = some_actor()) end_actor(actor->identity.instance(), "killed", 5ms);
      break;
    case Of::hang_actor:
      // Only those whose silence somebody else notices: a learner's peers, a checkpointer's coordinator.
      if (const auto actor = some_actor(); actor && actor->role != "decoder") actor->is_hung = true;
      break;
    case Of::kill_node:
      if (const auto node = newest_[host]; node && node->process->is_alive) {
        end_node(*node);
        clock_.after(fault.lasts, [this, host] {
          if (!exit_code_) begin_node(host);
        });
      }
      break;
    case Of::stop_node:
      for (const auto& node : nodes_) {
        if (node->host == host) node->process->stopped_until = until;
      }
      for (const auto& [instance, actor] : actors_) {
        if (actor->node == host) actor->process->stopped_until = until;
      }
      break;
    case Of::cut_node:
      wire_.silent_until[host] = wire_.deaf_until[host] = until;
      break;
    case Of::deafen_node:
      wire_.deaf_until[host] = until;
      break;
    case Of::silence_node:
      wire_.silent_until[host] = until;
      break;
    case Of::rival_node:
      begin_node(host);
      break;
    case Of::stop_controller:
      controller_->stopped_until = until;
      break;
    case Of::bad_wire:
      wire_.bad_until = until;
      break;
    case Of::fail_write:
      failing_writes_ += 1 + static_cast<int>(fault.target % 4);
      break;
    case Of::hang_write:
      hangs_write_ = true;
      break;
    case Of::scale:
      wire_.run_in(controller_, [this, fault] {
        if (is_started_)
          service_->handle("cli.1#1", Scale{.pool = "decoder", .target = 1 + fault.target % 9}, clock_.now());
      });
      break;
    case Of::terminate:
      ++times_told_to_end_;
      wire_.run_in(controller_, [this] {
        if (is_started_) service_->interrupt({.why = "SIGTERM", .is_preemption = true}, clock_.now());
        look();
      });
      break;
    case Of::restart:
      restart_controller();
      break;
  }
}

void World::restart_controller() {
  if (!is_started_) return;
  controller_->is_alive = false;
  for (const std::string& instance : own_agent_->hosted->list()) drop_actor(instance);
  // Its keys and its port are the next one's too: nodes dial on.
  service_.reset();
  committed_ = {0, newest_valid(run_.checkpoints(), CheckpointCheck::sizes)
                       ? newest_valid(run_.checkpoints(), CheckpointCheck::sizes)->step
                       : 0};
  begin_controller();
}

bool World::is_within_reach(const SimActor& actor) {
  const SimTime now = clock_.now();
  return !actor.is_hung && actor.process->stopped_until <= now && wire_.silent_until[actor.node] <= now &&
         wire_.deaf_until[actor.node] <= now && wire_.bad_until <= now && controller_->stopped_until <= now;
}

void World::watch_twins() {
  if (exit_code_) return;
  std::map<std::string, int> starts;
  for (const auto& [instance, actor] : actors_) {
    if (is_within_reach(*actor)) ++starts[actor->identity.actor];
  }
  std::erase_if(twins_since_, [&](const auto& entry) { return starts[entry.first] < 2; });
  for (const auto& [actor, count] : starts) {
    if (count < 2) continue;
    const SimTime since = twins_since_.try_emplace(actor, clock_.now()).first->second;
    if (clock_.now() - since < 30s) continue;
    breach(fmt::format("{} has lived {} times for half a minute", actor, count));
    return;
  }
  clock_.after(5s, [this] { watch_twins(); });
}

void World::judge_end() {
  const auto& job = service_->job();
  if (*exit_code_ == 4 && has_failed_writes_ && job.failure().find("could not be written") != std::string::npos) return;
  // A second signal stops at once.
  const bool is_as_told =
      (times_told_to_end_ > 0 && *exit_code_ == 75) || (times_told_to_end_ > 1 && *exit_code_ == 130);
  if (*exit_code_ != 0 && !is_as_told)
    return breach(fmt::format("the job ended with {}: {}", *exit_code_, job.failure()));
  if (*exit_code_ == 0 && job.checkpoints().committed_step() != kSteps)
    breach(fmt::format("done at step {}", job.checkpoints().committed_step()));
  judge_history();
  // Nodes leave when they are told, or when they have heard nothing for too long.
  const SimTime until = clock_.now() + 200s;
  while (clock_.step(until)) continue;
  for (const auto& [instance, actor] : actors_) breach(fmt::format("{} is left", instance));
}

void World::judge_history() {
  const auto newest = newest_valid(run_.checkpoints(), CheckpointCheck::sizes);
  if (!newest) {
    if (service_->job().checkpoints().committed_step() > 0) breach("what was committed is not on disk");
    return;
  }
  const auto history = nlohmann::json::parse(read_file(newest->directory + "/ledger.json").value()).get<History>();
  if (static_cast<std::int64_t>(history.size()) != newest->step)
    breach(fmt::format("step {} on disk holds {} steps", newest->step, history.size()));
  const auto epochs = db_->epochs().value();
  for (std::size_t i = 0; i < history.size(); ++i) {
    std::uint64_t owner = 0;
    for (const EpochRecord& epoch : epochs) {
      if (epoch.fence <= newest->manifest.fence && epoch.resume_step <= static_cast<std::int64_t>(i))
        owner = epoch.fence;
    }
    if (history[i] != owner)
      breach(fmt::format("step {} was trained by {:x} and belongs to {:x}", i + 1, history[i], owner));
  }
}

Outcome simulate(const Schedule& schedule, const std::string& folder) { return World(schedule, folder).run(); }

}  // namespace troupe::testing

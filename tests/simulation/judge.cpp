#include "tests/simulation/judge.h"

#include <fmt/format.h>

namespace troupe::testing {

void Judge::begins(const ControllerService& service, const Membership& membership, std::uint64_t term,
                   std::int64_t resume_step, std::string checkpoints_folder,
                   std::function<bool(std::uint64_t fence)> is_recorded) {
  nodes_ = std::make_unique<MembershipJudge>(seen_, breach_);
  actors_.begins(*nodes_);
  seen_ = {.service = &service, .membership = &membership, .term = term};
  awake_ = {};
  has_ticked_ = false;
  void_.reset();
  group_.begins(resume_step, std::move(checkpoints_folder), std::move(is_recorded));
}

void Judge::lets_in(const std::string& from, const Join& join, SimTime now) {
  seen_.now = now;
  nodes_->hears(from, join);
  nodes_->owes_no_answer();
}

void Judge::starts(SimTime now) {
  seen_.now = awake_.at(now);
  seen_.is_started = true;
}

bool Judge::is_void(const std::string& from, const Message& message) const {
  if (const auto* exited = std::get_if<ActorExited>(&message))
    return actors_.agent_of_start(fmt::format("{}#{}", exited->actor, exited->incarnation)) != from;
  if (from.find('/') == std::string::npos) return false;
  const ActorRecord* row = seen_.service->job().actor(name_without_life(from));
  if (!row || row->instance() != from) return true;
  // An evaluation is of the weights of an earlier group too.
  if (row->plan.role == "evaluator") return false;
  return GroupJudge::fence_of(message).value_or(group_.fence()) != group_.fence();
}

void Judge::hears(const std::string& from, const Message& message, SimTime now) {
  seen_.now = awake_.at(now);
  if (const auto* join = std::get_if<Join>(&message)) {
    nodes_->hears(from, *join);
  } else if (const auto* beat = std::get_if<Heartbeat>(&message)) {
    nodes_->hears(from, *beat);
  } else if (is_void(from, message)) {
    void_ = {fmt::format("{} of {}", name_of(type_of(message)), from), state()};
  } else {
    group_.hears(message);
    actors_.hears(from, message);
    if (actors_.lost_learner()) group_.loses(*actors_.lost_learner());
  }
  for (const std::int64_t rank : nodes_->taken_lost()) actors_.loses(rank);
}

void Judge::ticks(SimTime now) {
  seen_.now = awake_.at(now);
  has_ticked_ = true;
  nodes_->ticks();
  for (const std::int64_t rank : nodes_->taken_lost()) actors_.loses(rank);
}

void Judge::sends(const std::string& to, const Message& message) {
  ++sent_;
  nodes_->sends(to, message);
  group_.sends(to, message);
  actors_.sends(to, message, group_.fence());
}

void Judge::settled() {
  if (const auto before = std::exchange(void_, std::nullopt); before && before->second != state())
    breach_(fmt::format("{} is of an older start or another group, and it changed something", before->first));
  const bool has_ticked = std::exchange(has_ticked_, false);
  nodes_->settled();
  group_.settled(has_ticked);
  actors_.settled(has_ticked);
}

std::string Judge::state() const {
  const JobController& job = seen_.service->job();
  std::string state = fmt::format("{} {} {} {} {} {} {} {} {}", enum_name(job.state()), job.step(), job.failure(),
                                  job.checkpoints().committed_step(), job.checkpoints().is_writing(), job.restarts(),
                                  job.void_samples(), sent_, told_);
  for (const auto& [name, row] : job.actors().rows())
    state += fmt::format(" {} {} {} {}", row.instance(), enum_name(row.state), row.plan.node, row.restarts);
  return state;
}

}  // namespace troupe::testing

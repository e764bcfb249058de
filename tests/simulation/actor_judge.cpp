#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/simulation/judge.h"

namespace troupe::testing {

namespace {

/// World::setup() and docs/processes.md#restart.
constexpr std::size_t kBudget = 20, kRoleBudget = 60;
constexpr auto kWindow = 300s, kSteady = 600s, kStartTimeout = 60s, kRoomPatience = 5s;
/// The share of a node's memory that actors may get (docs/placement.md).
constexpr double kUsable = 0.7;
/// docs/evaluation.md#evaluations-of-a-run.
constexpr int kMostDeathsInPlay = 6;
constexpr double kFirstPause = 0.5, kLongestPause = 30, kJitter = 0.2;

bool is_fixed(const std::string& role) { return role == "learner" || role == "checkpointer"; }

}  // namespace

void ActorJudge::begins(const MembershipJudge& nodes) {
  nodes_ = &nodes;
  for (auto& [instance, start] : starts_) start.is_left = true;
  restarts_.clear();
  of_role_.clear();
  begun_ = {};
  up_since_.clear();
  room_since_.clear();
}

void ActorJudge::hears(const std::string& from, const Message& message) {
  lost_learner_.reset();
  if (const auto* up = std::get_if<ActorUp>(&message)) {
    const auto start = starts_.find(from);
    if (start == starts_.end()) return;
    if (!start->second.is_up) up_since_[up->actor] = seen_.now;
    start->second.is_up = true;
  } else if (const auto* exited = std::get_if<ActorExited>(&message)) {
    ends(*exited);
  } else if (const auto* sample = std::get_if<Quarantined>(&message)) {
    for (const std::string& producer : sample->producers) forgives(producer);
  } else if (const auto* begun = std::get_if<EvalBegun>(&message)) {
    const std::pair evaluation(begun->fence, begun->step);
    begins_ = evaluation == begun_ ? begins_ + 1 : 1;
    begun_ = evaluation;
    if (begins_ > 1 && begins_ <= kMostDeathsInPlay + 1) forgives(from);
  }
}

void ActorJudge::forgives(const std::string& instance) {
  auto& of = restarts_[name_without_life(instance)];
  if (of.empty()) return;
  auto& all = of_role_[instance.substr(0, instance.find('/'))];
  const auto same = std::find(all.begin(), all.end(), of.back());
  if (same != all.end()) all.erase(same);
  of.pop_back();
}

void ActorJudge::ends(const ActorExited& exited) {
  const auto found = starts_.find(fmt::format("{}#{}", exited.actor, exited.incarnation));
  if (found == starts_.end()) return;
  Start& start = found->second;
  (exited.unkillable ? start.is_unkillable : start.has_ended) = true;
  const ActorRecord* row = seen_.service->job().actor(exited.actor);
  const bool counts = row && row->instance() == found->first && is_hosted(*row) && !row->removing;
  if (!counts || exited.unkillable || !seen_.wants_actors() || seen_.service->job().is_spare(start.role)) return;
  owed_pause_ = pause_after(exited, start.role);
  if (start.role == "learner" && !owed_pause_->is_refused) lost_learner_ = exited.actor;
}

ActorJudge::Pause ActorJudge::pause_after(const ActorExited& exited, const std::string& role) {
  const std::int64_t code = exited.signal == 0 ? exited.exit_code : 0;
  const auto up_since = up_since_.find(exited.actor);
  const bool was_steady = up_since != up_since_.end() && seen_.now - up_since->second >= kSteady;
  up_since_.erase(exited.actor);
  Pause pause{.actor = exited.actor, .earliest = seen_.now, .latest = seen_.now};
  if (code == 64 || code == 65 || code == 77 || code == 78) {
    pause.is_refused = true;
    return pause;
  }
  std::size_t before = 1;
  if (code != 75) {
    auto &of = restarts_[exited.actor], &all = of_role_[role];
    if (was_steady) of.clear();
    for (auto* window : {&of, &all}) {
      while (!window->empty() && seen_.now - window->front() >= kWindow) window->pop_front();
    }
    before = of.size();
    pause.is_refused = before >= kBudget || all.size() >= kRoleBudget;
    if (pause.is_refused) return pause;
    of.push_back(seen_.now);
    all.push_back(seen_.now);
  }
  if (before == 0) return pause;
  const double middle = kFirstPause * std::exp2(static_cast<double>(before) - 1);
  const auto milliseconds = [](double seconds) { return Millis(std::llround(1000 * seconds)); };
  pause.earliest += milliseconds(std::min(middle * (1 - kJitter), kLongestPause)) - 1ms;
  pause.latest += milliseconds(std::min(middle * (1 + kJitter), kLongestPause)) + 1ms;
  return pause;
}

void ActorJudge::sends(const std::string& to, const Message& message, std::uint64_t fence) {
  if (const auto* spawn = std::get_if<Spawn>(&message)) {
    starts(to, *spawn);
  } else if (const auto* stop = std::get_if<Stop>(&message)) {
    const std::string instance = fmt::format("{}#{}", stop->actor, stop->incarnation);
    stopped_now_.insert(instance);
    if (const auto start = starts_.find(instance); start != starts_.end()) start->second.told_to_end = seen_.now;
  } else if (const auto* peers = std::get_if<Peers>(&message)) {
    introduces(to, *peers, fence);
  }
}

void ActorJudge::starts(const std::string& to, const Spawn& spawn) {
  const std::string instance = fmt::format("{}#{}", spawn.actor, spawn.incarnation);
  const auto rank = nodes_->rank_of(to);
  if (!rank) return breach_(fmt::format("{} is to start on {}, which is no node", instance, to));
  if (!seen_.wants_actors()) breach_(fmt::format("{} starts while the job ends", instance));
  if (nodes_->presence(*rank) == NodePresence::lost)
    breach_(fmt::format("{} is to start on node/{}, which is lost", instance, *rank));
  const Plan& plan = seen_.service->job().plan();
  const ActorRecord* row = seen_.service->job().actor(spawn.actor);
  std::int64_t memory = row ? row->plan.memory_bytes : 0;
  Start start{.actor = spawn.actor, .role = spawn.role, .rank = *rank, .memory = memory, .since = seen_.now};
  bool is_new_place = true;
  for (const auto& [other, of] : starts_) {
    if (of.has_ended || of.is_left) {
      is_new_place &= of.actor != spawn.actor || of.rank != *rank;
      continue;
    }
    if (of.rank == *rank) memory += of.memory;
    if (of.actor != spawn.actor) continue;
    is_new_place &= of.rank != *rank;
    if (is_fixed(spawn.role) || (!of.told_to_end && !of.is_unkillable))
      breach_(fmt::format("{} is to start, and {} has not ended", instance, other));
  }
  const auto place = static_cast<std::size_t>(*rank);
  if (place < plan.nodes.size() && memory > plan.nodes[place].memory_bytes)
    breach_(fmt::format("{} is to start on node/{}, and other starts still hold its memory", instance, *rank));
  if (is_new_place && nodes_->presence(*rank) == NodePresence::suspect)
    breach_(fmt::format("{} gets a place on node/{}, which is suspect", instance, *rank));
  if (!starts_.emplace(instance, std::move(start)).second)
    breach_(fmt::format("{} starts for the second time", instance));
}

void ActorJudge::introduces(const std::string& to, const Peers& peers, std::uint64_t fence) {
  const auto state_of = [&](const std::string& instance) {
    const auto start = starts_.find(instance);
    return start == starts_.end() ? Start{} : start->second;
  };
  if (peers.fence != fence) breach_(fmt::format("{} hears of peers of {:x} while {:x} stands", to, peers.fence, fence));
  for (const std::string& gone : peers.gone) {
    const Start start = state_of(gone);
    if (!start.has_ended && !start.is_left)
      breach_(fmt::format("{} is told that {} is gone before its end is known", to, gone));
  }
  for (const std::string& died : peers.died) {
    if (!state_of(died).has_ended) breach_(fmt::format("{} is told that {} died, and it has not ended", to, died));
  }
  for (const std::string& other : peers.unkillable) {
    if (!state_of(other).is_unkillable)
      breach_(fmt::format("{} is told that {} is unkillable, and it is not", to, other));
  }
  const ActorRecord* producer = seen_.service->job().actor(name_without_life(to));
  for (const std::string& address : peers.channels) {
    const std::string instance = address.substr(address.find(':') + 1);
    const ActorRecord* consumer = seen_.service->job().actor(name_without_life(instance));
    if (!consumer || consumer->instance() != instance || !is_hosted(*consumer)) {
      breach_(fmt::format("{} is to dial {}, which is not there", to, address));
    } else if (producer && (producer->plan.node == consumer->plan.node) != !address.starts_with("zmq:")) {
      breach_(fmt::format("{} is to dial {} from node/{}", to, address, producer->plan.node));
    }
  }
}

void ActorJudge::loses(std::int64_t rank) {
  for (auto& [instance, start] : starts_) {
    if (start.rank == rank) start.is_left = true;
  }
}

bool ActorJudge::is_left(const std::string& instance) const {
  const auto start = starts_.find(instance);
  return start == starts_.end() || start->second.is_left;
}

bool ActorJudge::is_owned(const std::string& instance, std::int64_t rank) const {
  const ActorRecord* row = seen_.service->job().actor(name_without_life(instance));
  return row && row->instance() == instance && row->plan.node == rank && is_hosted(*row);
}

std::optional<std::string> ActorJudge::agent_of_start(const std::string& instance) const {
  const auto start = starts_.find(instance);
  return start == starts_.end() ? std::nullopt : std::optional(nodes_->agent_of(start->second.rank));
}

void ActorJudge::settled(bool has_ticked) {
  const JobController& job = seen_.service->job();
  if (const auto pause = std::exchange(owed_pause_, std::nullopt)) {
    const ActorRecord* row = job.actor(pause->actor);
    const bool is_planned = row && row->state == ActorState::planned && row->restart_at;
    if (pause->is_refused && seen_.wants_actors() && !pause->actor.starts_with("evaluator/")) {
      breach_(fmt::format("{} ended in a way that cannot be mended, and the job goes on", pause->actor));
    } else if (!pause->is_refused && !is_planned) {
      breach_(fmt::format("{} ended and is not started again: {}", pause->actor, job.failure()));
    } else if (is_planned && (*row->restart_at < pause->earliest || *row->restart_at > pause->latest)) {
      breach_(fmt::format("{} starts again {:.3f} s after its end; {:.3f} to {:.3f} were right", pause->actor,
                          Seconds(*row->restart_at - seen_.now).count(), Seconds(pause->earliest - seen_.now).count(),
                          Seconds(pause->latest - seen_.now).count()));
    }
  }
  for (const std::string& instance : std::exchange(stopped_now_, {})) {
    const ActorRecord* row = job.actor(name_without_life(instance));
    if (row && row->instance() == instance && row->state == ActorState::up && row->plan.role != "checkpointer")
      breach_(fmt::format("{} is told to end and counts as up", instance));
  }
  if (has_ticked && seen_.wants_actors()) judge_table();
}

void ActorJudge::judge_table() {
  const JobController& job = seen_.service->job();
  const Plan& plan = job.plan();
  std::map<std::int64_t, std::int64_t> memory;
  for (const PlannedActor& planned : plan.actors) {
    const ActorRecord* row = job.actor(planned.name);
    if (!row || row->plan.node != planned.node || row->removing)
      breach_(fmt::format("the plan has {} on node/{}, and the job has not", planned.name, planned.node));
    if (row && !row->waits_for_room) memory[planned.node] += planned.memory_bytes;
  }
  std::size_t kept = 0;
  for (const auto& [name, row] : job.actors().rows()) {
    kept += row.removing ? 0 : 1;
    const auto start = starts_.find(row.instance());
    if (is_hosted(row)) {
      if (nodes_->presence(row.plan.node) == NodePresence::lost)
        breach_(fmt::format("{} counts as {} on node/{}, which is lost", name, enum_name(row.state), row.plan.node));
      if (start == starts_.end() || start->second.rank != row.plan.node || start->second.has_ended)
        breach_(fmt::format("{} counts as {} and was not started there or has ended", row.instance(),
                            enum_name(row.state)));
    }
    if (row.state == ActorState::planned && !row.removing) {
      if (!row.restart_at && !row.waits_for_room)
        breach_(fmt::format("{} is planned, with neither a pause nor missing room to wait for", name));
      if (row.restart_at && *row.restart_at <= seen_.now)
        breach_(fmt::format("{} is not started though its pause is over", name));
    }
    if (row.state == ActorState::starting && start != starts_.end() &&
        seen_.now - std::max(start->second.since, start->second.told_to_end.value_or(SimTime{})) > kStartTimeout)
      breach_(fmt::format("{} does not come up and is not killed", row.instance()));
    bool has_room = false;
    for (std::size_t rank = 0; row.waits_for_room && rank < plan.nodes.size(); ++rank) {
      const auto node = static_cast<std::int64_t>(rank);
      has_room |= nodes_->presence(node) == NodePresence::alive &&
                  (node == 0 || (row.plan.role != "rollout" && row.plan.role != "evaluator")) &&
                  static_cast<double>(memory[node] + row.plan.memory_bytes) <=
                      kUsable * static_cast<double>(plan.nodes[rank].memory_bytes);
    }
    if (!has_room) {
      room_since_.erase(name);
    } else if (seen_.now - room_since_.try_emplace(name, seen_.now).first->second > kRoomPatience) {
      breach_(fmt::format("{} waits for room, and there is some", name));
    }
  }
  if (kept != plan.actors.size())
    breach_(fmt::format("{} actors are in the plan and {} in the job", plan.actors.size(), kept));
}

}  // namespace troupe::testing

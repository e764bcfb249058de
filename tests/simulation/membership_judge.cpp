#include <fmt/format.h>

#include "tests/simulation/judge.h"
#include "workers/controller/join_rules.h"

namespace troupe::testing {

namespace {
/// docs/processes.md#membership, with the lease of World::setup().
constexpr auto kLease = 10s, kSuspicion = 3s;
/// Turns of a node come a beat apart, and a message takes a moment.
constexpr auto kSlack = 1500ms;
}  // namespace

void MembershipJudge::hears(const std::string& from, const Join& join) {
  owed_ack_.reset();
  const auto known = names_.find(join.name);
  const bool is_other_build = join.protocol != kJoinProtocol || join.sample_revision != kSampleRevision;
  const bool is_other_key = known != names_.end() && known->second.key != join.key;
  if (join.name.empty() || join.name == "local" || join.cpus < 1 || is_other_build || is_other_key ||
      retired_[join.name].contains(join.incarnation)) {
    owed_[from] = Answer::refused;
    return;
  }
  owed_[from] = Answer::joined;
  Named& named = known == names_.end() ? names_[join.name] : known->second;
  if (known == names_.end()) {
    named.rank = static_cast<std::int64_t>(names_.size());
  } else if (named.incarnation != join.incarnation) {
    retired_[join.name].insert(named.incarnation);
    owed_[named.address] = Answer::refused;
    newly_lost_.insert(named.rank);
  }
  const bool is_news =
      known == names_.end() || named.presence == NodePresence::lost || named.incarnation != join.incarnation;
  if (is_news) named.presence = NodePresence::alive;
  named.incarnation = join.incarnation;
  named.address = from;
  named.key = join.key;
  named.last_heard = seen_.now;
}

void MembershipJudge::hears(const std::string& from, const Heartbeat&) {
  const auto named = names_.find(name_without_life(from));
  const bool is_member =
      named != names_.end() && named->second.address == from && named->second.presence != NodePresence::lost;
  if (is_member) named->second.last_heard = seen_.now;
  owed_ack_ = {from, is_member};
}

void MembershipJudge::sends(const std::string& to, const Message& message) {
  if (const auto* reply = std::get_if<Reply>(&message)) {
    if (reply->code == 2) given_[to] = Answer::refused;
  } else if (const auto* joined = std::get_if<Joined>(&message)) {
    given_[to] = Answer::joined;
    if (rank_of(to) != joined->node_rank || joined->term != seen_.term)
      breach_(fmt::format("{} was let in as node/{} of term {}", to, joined->node_rank, joined->term));
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    if (!owed_ack_ || owed_ack_->first != to || owed_ack_->second != ack->is_member)
      breach_(fmt::format("a beat of {} was answered as that of {}", to, ack->is_member ? "a member" : "no member"));
    owed_ack_.reset();
  }
}

void MembershipJudge::ticks() {
  has_ticked_ = true;
  for (auto& [name, named] : names_) {
    if (named.presence == NodePresence::lost) continue;
    const auto silence = seen_.now - named.last_heard;
    named.presence = silence > kLease       ? NodePresence::lost
                     : silence > kSuspicion ? NodePresence::suspect
                                            : NodePresence::alive;
    if (named.presence == NodePresence::lost) newly_lost_.insert(named.rank);
  }
}

void MembershipJudge::settled() {
  for (const auto& [to, answer] : owed_) {
    const auto given = given_.find(to);
    const Answer was = given == given_.end() ? Answer::none : given->second;
    if (was != answer)
      breach_(fmt::format("{} was {} and should have been {}", to,
                          was == Answer::none     ? "not answered"
                          : was == Answer::joined ? "let in"
                                                  : "refused",
                          answer == Answer::joined ? "let in" : "refused"));
  }
  owed_.clear();
  given_.clear();
  if (owed_ack_) breach_(fmt::format("a beat of {} was not answered", owed_ack_->first));
  owed_ack_.reset();
  if (!std::exchange(has_ticked_, false)) return;
  for (const auto& [name, member] : seen_.membership->members()) {
    if (member.rank == 0) continue;
    const auto named = names_.find(name);
    if (named == names_.end()) {
      breach_(fmt::format("{} is a member and never joined", name));
    } else if (named->second.presence != member.presence || named->second.rank != member.rank) {
      breach_(fmt::format("node/{} {} is {} {:.1f} s after its last message", member.rank, name,
                          enum_name(member.presence), Seconds(seen_.now - named->second.last_heard).count()));
    }
  }
}

NodePresence MembershipJudge::presence(std::int64_t rank) const {
  if (rank == 0) return NodePresence::alive;
  for (const auto& [name, named] : names_) {
    if (named.rank == rank) return named.presence;
  }
  return NodePresence::lost;
}

std::optional<std::int64_t> MembershipJudge::rank_of(const std::string& address) const {
  if (address.starts_with("node/0")) return 0;
  const auto named = names_.find(name_without_life(address));
  return named == names_.end() || named->second.address != address ? std::nullopt : std::optional(named->second.rank);
}

std::string MembershipJudge::agent_of(std::int64_t rank) const {
  if (rank == 0) return "node/0#0";
  for (const auto& [name, named] : names_) {
    if (named.rank == rank) return fmt::format("node/{}#{}", rank, named.incarnation);
  }
  return {};
}

void NodeJudge::hears(const Message& message, SimTime now) {
  if (const auto* joined = std::get_if<Joined>(&message)) {
    has_other_term_ |= term_ != 0 && joined->term != term_;
    if (has_other_term_) return;
    term_ = joined->term;
    lease_ = Millis(joined->lease_ms);
    orphan_ = Millis(joined->orphan_ms);
    last_heard_ = awake_.at(now);
    is_member_ = true;
    was_given_up_ = false;
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    if (!is_member_) return;
    last_heard_ = awake_.at(now);
    was_given_up_ = !ack->is_member;
    is_member_ = ack->is_member;
  } else if (std::holds_alternative<Reply>(message)) {
    was_refused_ = true;
  }
}

void NodeJudge::turned(const NodeMembership& membership, const std::optional<Message>& message, SimTime now) {
  using Phase = MembershipPhase;
  const auto silence = awake_.at(now) - last_heard_;
  const Phase phase = membership.phase();
  const auto is_wrong = [&](const char* what) {
    breach_(fmt::format("a node is {} {:.1f} s after the controller's last message: {}", enum_name(phase),
                        Seconds(silence).count(), what));
  };
  if (message) last_sent_ = now;
  is_member_ = phase == Phase::member;
  if (phase == Phase::refused && !was_refused_) is_wrong("the controller has not refused it");
  if (phase != Phase::refused && was_refused_) is_wrong("it was refused");
  if (phase == Phase::refused || was_refused_) return;
  if (phase == Phase::member && silence > lease_ + kSlack) is_wrong("its lease is over");
  if (phase == Phase::apart && !was_given_up_ && silence < lease_ - kSlack) is_wrong("its lease is not over");
  if (phase == Phase::orphaned && !has_other_term_ && silence < lease_ + orphan_ - kSlack)
    is_wrong("lease_s and orphan_s are not over");
  if (phase != Phase::orphaned && has_other_term_) is_wrong("another controller goes on");
  if (phase == Phase::apart && silence > lease_ + orphan_ + kSlack) is_wrong("what it hosts should have ended");
}

}  // namespace troupe::testing

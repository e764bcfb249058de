#include "workers/controller/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/control/actor_identity.h"
#include "workers/controller/join_rules.h"

namespace troupe::workers {

namespace {
constexpr std::chrono::milliseconds kSuspicion{3000};
}  // namespace

Membership::Membership(NodeSnapshot own, std::chrono::milliseconds lease)
    : lease_(lease), suspicion_(std::min(kSuspicion, lease / 2)) {
  const std::string name = own.name;
  members_[name] = {.rank = 0, .snapshot = std::move(own), .last_heard = TimePoint::max(), .address = "node/0#0"};
}

Result<Membership::Joined> Membership::join(const Join& join, const std::string& address, TimePoint now) {
  TROUPE_TRY(check_join(join));
  const auto known = members_.find(join.name);
  if (known != members_.end() && known->second.rank == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("node name '{}' is the controller's own; start the node with another --name", join.name)};
  }
  if (known != members_.end()) TROUPE_TRY(check_owner(join, known->second.key));
  if (retired_[join.name].contains(join.incarnation)) {
    return Error{Errc::failed_precondition, taken_over(join.name)};
  }
  Joined joined{.rank = static_cast<std::int64_t>(members_.size()), .is_news = true};
  if (known != members_.end()) {
    const Member& before = known->second;
    joined.rank = before.rank;
    joined.is_news = before.presence == NodePresence::lost || before.incarnation != join.incarnation;
    if (before.incarnation != join.incarnation) {
      retired_[join.name].insert(before.incarnation);
      joined.replaced = before.address;
      joined.was_lost = before.presence == NodePresence::lost;
    }
  }
  members_[join.name] = {
      .rank = joined.rank,
      .incarnation = join.incarnation,
      .snapshot = {.name = join.name, .cpus = join.cpus, .memory_bytes = join.memory_bytes},
      .last_heard = now,
      .presence = joined.is_news || known == members_.end() ? NodePresence::alive : known->second.presence,
      .address = address,
      .key = join.key};
  return joined;
}

bool Membership::heard(const std::string& address, TimePoint now) {
  const auto member = members_.find(name_without_life(address));
  if (member == members_.end() || member->second.address != address) return false;
  if (member->second.presence == NodePresence::lost) return false;
  member->second.last_heard = now;
  return true;
}

std::vector<Membership::Change> Membership::judge(TimePoint now) {
  std::vector<Change> changes;
  for (auto& [name, member] : members_) {
    if (member.rank == 0 || member.presence == NodePresence::lost) continue;
    const auto silence = now - member.last_heard;
    const NodePresence presence = silence > lease_       ? NodePresence::lost
                                  : silence > suspicion_ ? NodePresence::suspect
                                                         : NodePresence::alive;
    if (presence == member.presence) continue;
    member.presence = presence;
    changes.push_back({.rank = member.rank, .presence = presence});
  }
  return changes;
}

const Membership::Member* Membership::of_rank(std::int64_t rank) const {
  const auto member =
      std::find_if(members_.begin(), members_.end(), [&](const auto& entry) { return entry.second.rank == rank; });
  return member == members_.end() ? nullptr : &member->second;
}

ClusterSnapshot Membership::cluster() const {
  ClusterSnapshot cluster;
  cluster.nodes.resize(members_.size());
  for (const auto& [name, member] : members_) cluster.nodes[static_cast<std::size_t>(member.rank)] = member.snapshot;
  return cluster;
}

}  // namespace troupe::workers

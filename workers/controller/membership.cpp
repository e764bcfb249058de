#include "workers/controller/membership.h"

#include <fmt/format.h>

#include "workers/controller/join_rules.h"

namespace troupe::workers {

Membership::Membership(NodeSnapshot own, std::chrono::milliseconds lease) : lease_(lease) {
  const std::string name = own.name;
  members_[name] = {
      .rank = 0, .snapshot = std::move(own), .last_heard = TimePoint::max(), .alive = true, .address = "node/0"};
}

Result<std::int64_t> Membership::join(const Join& join, const std::string& address, TimePoint now) {
  TROUPE_TRY(check_join(join));
  const auto known = members_.find(join.name);
  if (known != members_.end() && known->second.rank == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("node name '{}' is the controller's own; start the node with another --name", join.name)};
  }
  if (known != members_.end()) TROUPE_TRY(check_owner(join, known->second.key));
  const std::int64_t rank = known == members_.end() ? static_cast<std::int64_t>(members_.size()) : known->second.rank;
  NodeSnapshot snapshot{.name = join.name, .cpus = join.cpus, .memory_bytes = join.memory_bytes};
  members_[join.name] = {.rank = rank,
                         .incarnation = join.incarnation,
                         .snapshot = std::move(snapshot),
                         .last_heard = now,
                         .alive = true,
                         .address = address,
                         .key = join.key};
  return rank;
}

bool Membership::heard(const std::string& name, TimePoint now) {
  const auto member = members_.find(name);
  if (member == members_.end() || !member->second.alive) return false;
  if (member->second.rank != 0) member->second.last_heard = now;
  return true;
}

std::vector<std::int64_t> Membership::expire(TimePoint now) {
  std::vector<std::int64_t> lost;
  for (auto& [name, member] : members_) {
    if (member.rank == 0 || !member.alive || now - member.last_heard <= lease_) continue;
    member.alive = false;
    lost.push_back(member.rank);
  }
  return lost;
}

std::size_t Membership::alive() const {
  std::size_t count = 0;
  for (const auto& [name, member] : members_) count += member.alive ? 1 : 0;
  return count;
}

ClusterSnapshot Membership::cluster() const {
  ClusterSnapshot cluster;
  cluster.nodes.resize(members_.size());
  for (const auto& [name, member] : members_) cluster.nodes[static_cast<std::size_t>(member.rank)] = member.snapshot;
  return cluster;
}

}  // namespace troupe::workers

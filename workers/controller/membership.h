#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Which node agents belong to the job, by name and rank, and when each was last heard of. A node sends Join until it
/// is answered, then Heartbeat every second; one that is silent for longer than the lease (cluster.lease_s) counts as
/// lost. Rank 0 is the node inside `troupe run` and never lost; others get the next rank when they join, and keep it
/// when they come back. Pure: sends nothing, and time is what the caller says. Not thread-safe.
class Membership {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Member {
    std::int64_t rank = 0;
    /// Of the agent's process, a random number: tells a repeated Join from a new agent.
    std::uint64_t incarnation = 0;
    /// Cores and memory, as Join gave them.
    NodeSnapshot snapshot;
    /// Join or Heartbeat, whichever came last.
    TimePoint last_heard{};
    bool alive = false;
    /// Control messages to it go to this name.
    std::string address;
    /// Public key of the node's link: the name belongs to it.
    std::string key = {};
  };
  /// `own`: this machine, rank 0, address "node/0".
  Membership(NodeSnapshot own, std::chrono::milliseconds lease);

  /// A node joins or comes back. Returns its rank. Errors: those of check_join and check_owner; invalid_argument
  /// (the controller's own name).
  /// A living node of the same name and another incarnation is replaced: one name
  /// is one machine.
  Result<std::int64_t> join(const Join& join, const std::string& address, TimePoint now);
  /// A sign of life; false if the node is unknown or counts as lost: it must join again.
  bool heard(const std::string& name, TimePoint now);
  /// Ranks whose lease ran out by now; each is reported once.
  std::vector<std::int64_t> expire(TimePoint now);
  /// Nodes that count as living, rank 0 included.
  std::size_t alive() const;
  const std::map<std::string, Member>& members() const { return members_; }
  /// Every node by rank, lost ones included, for the planner.
  ClusterSnapshot cluster() const;

 private:
  const std::chrono::milliseconds lease_;
  std::map<std::string, Member> members_;
};

}  // namespace troupe::workers

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "comm/control/messages.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Whether a node is heard of. alive: within the last beats. suspect: silent for a while; nothing new is placed there.
/// lost: silent for the lease; what it hosted is started elsewhere.
enum class NodePresence : std::uint8_t { alive, suspect, lost };
constexpr auto enum_names(NodePresence) { return std::array{"alive", "suspect", "lost"}; }

/// Which node agents belong to the job, by name and rank, and when each was last heard of. A node sends Join until it
/// is answered, then Heartbeat every second; one that is silent for 3 s (or half of a shorter lease) is suspect, one
/// that is silent for longer than the lease (cluster.lease_s) lost until it joins again. Rank 0 is the node inside
/// `troupe run` and always alive; others get the next rank when they join, and keep it when they come back.
///
/// A name belongs to its newest process: one that joins under a known name takes it over, and what the process before
/// still sends is refused. Pure: sends nothing, and time is what the caller says. Not thread-safe.
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
    NodePresence presence = NodePresence::alive;
    /// Control messages to it go to this name: "NAME#INCARNATION".
    std::string address = {};
    /// Public key of the node's link: the name belongs to it.
    std::string key = {};
  };
  struct Joined {
    std::int64_t rank = 0;
    /// It was not a member, or counted as lost, or another process had its name.
    bool is_news = false;
    /// Address of the process that had the name until now; empty: none, or it was this one.
    std::string replaced = {};
    /// That process counted as lost.
    bool was_lost = false;
  };
  struct Change {
    std::int64_t rank = 0;
    NodePresence presence = NodePresence::alive;
  };

  /// `own`: this machine, rank 0, address "node/0#0".
  Membership(NodeSnapshot own, std::chrono::milliseconds lease);

  /// A node joins or comes back. Errors: those of check_join and check_owner; invalid_argument (the
  /// controller's own name), failed_precondition (a newer process has the name).
  Result<Joined> join(const Join& join, const std::string& address, TimePoint now);
  /// A sign of life of the process at `address`; false if it is unknown, lost or not the newest of its name: it must
  /// join again.
  bool heard(const std::string& address, TimePoint now);
  /// What has changed by now through silence, and through signs of life since; each change is reported once.
  std::vector<Change> judge(TimePoint now);
  /// The member of this rank; null: none.
  const Member* of_rank(std::int64_t rank) const;
  const std::map<std::string, Member>& members() const { return members_; }
  /// Every node by rank, lost ones included, for the planner.
  ClusterSnapshot cluster() const;

 private:
  const std::chrono::milliseconds lease_, suspicion_;
  std::map<std::string, Member> members_;
  // By name: incarnations whose name another process has taken.
  std::map<std::string, std::set<std::uint64_t>> retired_;
};

}  // namespace troupe::workers

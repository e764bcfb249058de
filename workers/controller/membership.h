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

namespace troupe {

/// Which node agents belong to the job, by name and rank, and when each was last heard of (control-plane.md 4, 5.1).
/// Rank 0 is the node inside `troupe run`; others join and keep their rank when they come back. Pure.
class Membership {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Member {
    std::int64_t rank = 0;
    std::uint64_t incarnation = 0;
    NodeSnapshot snapshot;
    TimePoint last_heard{};
    bool alive = false;
    std::string address;  ///< letters to it go to this name
  };
  Membership(NodeSnapshot own, std::chrono::milliseconds lease);

  /// A node joins or comes back. Returns its rank. Errors: invalid_argument (bad name or no cpus).
  /// A living node of the same name and another incarnation is replaced: one name is one machine.
  Result<std::int64_t> join(const Join& join, const std::string& address, TimePoint now);
  /// A sign of life; false if the node is unknown or counts as lost: it must join again.
  bool heard(const std::string& name, TimePoint now);
  /// Ranks whose lease ran out by now; each is reported once.
  std::vector<std::int64_t> expire(TimePoint now);
  std::size_t alive() const;
  const std::map<std::string, Member>& members() const { return members_; }
  ClusterSnapshot cluster() const;

 private:
  const std::chrono::milliseconds lease_;
  std::map<std::string, Member> members_;
};

}  // namespace troupe

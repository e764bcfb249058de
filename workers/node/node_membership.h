#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "comm/control/messages.h"
#include "workers/node/awake_clock.h"

namespace troupe::workers {

/// A node's side of its place in a job. asking: it wants to join. member: the controller answers its beats. apart: the
/// controller has been silent for the lease; the node keeps what it hosts and asks again. orphaned: it was apart for
/// too long, or another controller goes on with the job, and what it hosts has to end. refused: it may not join, or a
/// newer process has its name.
enum class MembershipPhase : std::uint8_t { asking, member, apart, orphaned, refused };
constexpr auto enum_names(MembershipPhase) { return std::array{"asking", "member", "apart", "orphaned", "refused"}; }

/// When a node sends what to its controller, and what it makes of the answers: Join twice a second until it is
/// answered, then Heartbeat every second, Join again when the controller is silent or says that the node is none of
/// its own (docs/processes.md#membership). A time in which the node itself was stopped counts as no silence
/// (AwakeClock). Pure: sends nothing, and time is what the caller says. Not thread-safe.
class NodeMembership {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `own`: the request as it is repeated; `running` is filled at each. `beat`: pause between two beats.
  explicit NodeMembership(Join own, std::chrono::milliseconds beat = std::chrono::milliseconds(1000))
      : own_(std::move(own)), beat_(beat) {}

  MembershipPhase phase() const { return phase_; }
  /// Why the node was refused or is orphaned, for people; empty: it is neither.
  const std::string& reason() const { return reason_; }

  /// What is to be sent now, if anything; `running` ("decoder/0#1") is what the node hosts. Call at next() at the
  /// latest.
  std::optional<Message> tick(const std::vector<std::string>& running, std::int64_t free_memory_bytes, TimePoint now);
  /// When tick() has something to do again.
  TimePoint next() const { return next_; }
  /// The node's line to the controller is dead, and another one may help: since the last call.
  bool wants_new_line();

  void on(const Joined& joined, TimePoint now);
  void on(const HeartbeatAck& ack, TimePoint now);
  void on(const Reply& refusal);

 private:
  Message request(const std::vector<std::string>& running);

  Join own_;
  const std::chrono::milliseconds beat_;
  MembershipPhase phase_ = MembershipPhase::asking;
  std::chrono::milliseconds lease_{10'000}, orphan_{60'000};
  std::string reason_;
  std::uint64_t sequence_ = 0;
  AwakeClock clock_;
  // Of the awake clock, but for next_.
  TimePoint last_heard_{}, next_{};
  std::optional<TimePoint> line_since_;
  bool wants_line_ = false;
};

}  // namespace troupe::workers

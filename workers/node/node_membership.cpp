#include "workers/node/node_membership.h"

#include <algorithm>
#include <utility>

namespace troupe::workers {

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kAskAgain{500};
constexpr milliseconds kShortestLease{3000};
/// A new line is given so long before the next one.
constexpr milliseconds kLinePatience{5000};
}  // namespace

Message NodeMembership::request(const std::vector<std::string>& running) {
  own_.running = running;
  return own_;
}

std::optional<Message> NodeMembership::tick(const std::vector<std::string>& running, std::int64_t free_memory_bytes,
                                            TimePoint now) {
  const TimePoint awake = clock_.at(now);
  if (phase_ == MembershipPhase::member && awake - last_heard_ > lease_) phase_ = MembershipPhase::apart;
  if (phase_ == MembershipPhase::apart) {
    if (awake - last_heard_ > lease_ + orphan_) {
      phase_ = MembershipPhase::orphaned;
      reason_ = "the controller is out of reach for too long";
    }
    if (!line_since_ || awake - *line_since_ > kLinePatience) {
      line_since_ = awake;
      wants_line_ = true;
    }
  }
  if (phase_ == MembershipPhase::orphaned || phase_ == MembershipPhase::refused || now < next_) return std::nullopt;
  if (phase_ != MembershipPhase::member) {
    next_ = now + kAskAgain;
    return request(running);
  }
  // From the beat that was due, so that beats keep their pace however late one is; those that were missed are not
  // made up for.
  next_ = std::max(next_ + beat_, now + beat_ / 2);
  return Heartbeat{.node = own_.name, .sequence = ++sequence_, .free_memory_bytes = free_memory_bytes};
}

bool NodeMembership::wants_new_line() { return std::exchange(wants_line_, false); }

void NodeMembership::on(const Joined& joined, TimePoint now) {
  if (phase_ == MembershipPhase::orphaned || phase_ == MembershipPhase::refused) return;
  if (own_.term_seen != 0 && joined.term != own_.term_seen) {
    phase_ = MembershipPhase::orphaned;
    reason_ = "another controller goes on with the job and knows nothing of what runs here";
    return;
  }
  lease_ = std::max(milliseconds(joined.lease_ms), kShortestLease);
  orphan_ = milliseconds(joined.orphan_ms);
  last_heard_ = clock_.at(now);
  line_since_.reset();
  if (phase_ == MembershipPhase::member) return;
  phase_ = MembershipPhase::member;
  own_.term_seen = joined.term;
  next_ = now;
}

void NodeMembership::on(const HeartbeatAck& ack, TimePoint now) {
  if (phase_ != MembershipPhase::member) return;
  last_heard_ = clock_.at(now);
  if (ack.is_member) return;
  phase_ = MembershipPhase::apart;  // it is heard, but was given up: it asks at once, over the line that works
  line_since_ = last_heard_;
  next_ = now;
}

void NodeMembership::on(const Reply& refusal) {
  phase_ = MembershipPhase::refused;
  reason_ = refusal.text;
}

}  // namespace troupe::workers

#include "workers/node/node_membership.h"

#include <algorithm>
#include <utility>

namespace troupe::workers {

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kAskAgain{500};
constexpr milliseconds kShortestLease{3000};
/// A tick that comes so much later than the one before follows a stop of this process.
constexpr milliseconds kGap{2000};
/// A new line is given so long before the next one.
constexpr milliseconds kLinePatience{5000};
}  // namespace

Message NodeMembership::request(const std::vector<std::string>& running) {
  own_.running = running;
  return own_;
}

std::optional<Message> NodeMembership::tick(const std::vector<std::string>& running, std::int64_t free_memory_bytes,
                                            TimePoint now) {
  if (last_tick_ != TimePoint{} && now - last_tick_ > kGap) last_heard_ += now - last_tick_;
  last_tick_ = now;
  if (phase_ == MembershipPhase::member && now - last_heard_ > lease_) phase_ = MembershipPhase::apart;
  if (phase_ == MembershipPhase::apart) {
    if (now - last_heard_ > lease_ + orphan_) phase_ = MembershipPhase::orphaned;
    if (!line_since_ || now - *line_since_ > kLinePatience) {
      line_since_ = now;
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
    phase_ = MembershipPhase::orphaned;  // another controller goes on with the job: it knows nothing of what runs here
    return;
  }
  lease_ = std::max(milliseconds(joined.lease_ms), kShortestLease);
  orphan_ = milliseconds(joined.orphan_ms);
  last_heard_ = now;
  line_since_.reset();
  if (phase_ == MembershipPhase::member) return;
  phase_ = MembershipPhase::member;
  own_.term_seen = joined.term;
  next_ = now;
}

void NodeMembership::on(const HeartbeatAck& ack, TimePoint now) {
  if (phase_ != MembershipPhase::member) return;
  last_heard_ = now;
  if (ack.is_member) return;
  phase_ = MembershipPhase::apart;  // it is heard, but was given up: it asks at once, over the line that works
  line_since_ = now;
  next_ = now;
}

void NodeMembership::on(const Reply& refusal) {
  phase_ = MembershipPhase::refused;
  refusal_ = refusal.text;
}

}  // namespace troupe::workers

#include "bench/actors/actor_ping_pong.h"

#include <fmt/format.h>

#include <future>
#include <optional>
#include <stdexcept>

#include "actors/bridge.h"
#include "base/ids.h"
#include "bench/support/failures.h"
#include "comm/control/message_codec.h"
#include "tests/support/blocked_sigterm.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kPinger = "pinger", kLocalEcho = "local", kRemoteEcho = "controller";
constexpr std::uint64_t kFirstSequence = 1'000'000;  // five bytes on the wire from the first ping to the last

Message heartbeat(std::uint64_t sequence) {
  return Heartbeat{.node = kPinger, .sequence = sequence, .free_memory_bytes = std::int64_t{8} << 30};
}
Message acknowledgement(std::uint64_t sequence) { return HeartbeatAck{.sequence = sequence, .term = 1}; }

MailboxActor::behavior_type echo(MailboxActor::pointer, Bridge* bridge) {
  return {
      [bridge](const ControlMessage& control) {
        const auto* beat = std::get_if<Heartbeat>(&control.message);
        if (beat != nullptr) bridge->send({control.to, control.from, acknowledgement(beat->sequence)});
      },
      [](Signal) {},
  };
}

/// Two ends of one program: each is who it says.
Result<Party> by_name(const PeerProof&, const std::string&, const std::string& from) { return party_named(from); }

/// One phase: what a pinger was asked for and has measured.
struct Phase {
  std::string target;
  PingPlan plan;
  std::promise<RoundTrips> ended;
};
struct PingerState {
  RoundTrips microseconds;
  std::uint64_t sequence = kFirstSequence;
  Clock::time_point sent;
  static inline const char* name = "pinger";
};

/// Starts with the first timer; ends itself after the last answer.
MailboxActor::behavior_type pinger(MailboxActor::stateful_pointer<PingerState> self, Bridge* bridge,
                                   std::shared_ptr<Phase> phase) {
  self->state.microseconds.reserve(static_cast<std::size_t>(phase->plan.pings));
  const auto ping = [self, bridge, phase] {
    self->state.sent = Clock::now();
    bridge->send({kPinger, phase->target, heartbeat(self->state.sequence)});
  };
  return {
      [self, phase, ping](const ControlMessage& control) {
        const auto now = Clock::now();
        PingerState& state = self->state;
        const auto* answer = std::get_if<HeartbeatAck>(&control.message);
        if (answer == nullptr || answer->sequence != state.sequence) return;
        const auto answered = static_cast<int>(++state.sequence - kFirstSequence);
        const double microseconds = std::chrono::duration<double, std::micro>(now - state.sent).count();
        if (answered > phase->plan.warm_up) state.microseconds.push_back(microseconds);
        if (answered < phase->plan.warm_up + phase->plan.pings) return ping();
        phase->ended.set_value(std::move(state.microseconds));
        self->quit();
      },
      [ping](Signal) { ping(); },
  };
}

}  // namespace

/// Loop, bridge and actor system of one process, taken down as a job does: actors, then the loop, then the bridge.
class PostOffice {
 public:
  explicit PostOffice(const std::string& self)
      : loop_(must(IoLoop::start(self))), bridge_(*loop_, self, new_incarnation()) {
    config_.set("scheduler.max-threads", std::size_t{2});  // idle: actors here, like roles, are detached
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  ~PostOffice() {
    bridge_.remove_local(echo_name_);
    if (echo_) caf::anon_send_exit(*echo_, caf::exit_reason::user_shutdown);
    echo_.reset();
    system_.reset();
    loop_.reset();
  }
  PostOffice(const PostOffice&) = delete;
  PostOffice& operator=(const PostOffice&) = delete;

  void spawn_echo(const std::string& name) {
    echo_name_ = name;
    echo_ = system_->spawn<caf::detached>(echo, &bridge_);
    bridge_.add_local(name, *echo_);
  }
  void listen(const std::string& endpoint) { must(loop_->bind_router(endpoint, bridge_.receiver(by_name))); }
  void dial(const std::string& endpoint) {
    bridge_.set_default_route(must(loop_->connect_dealer(endpoint, kPinger, bridge_.receiver(by_name))));
  }
  RoundTrips ping(const std::shared_ptr<Phase>& phase) {
    auto ended = phase->ended.get_future();
    const MailboxActor actor = system_->spawn<caf::detached>(pinger, &bridge_, phase);
    bridge_.add_local(kPinger, actor);  // before the first ping, whose answer comes by this name
    caf::anon_send(actor, Signal::tick);
    const bool in_time = ended.wait_for(phase->plan.deadline()) == std::future_status::ready;
    bridge_.remove_local(kPinger);
    if (in_time) return ended.get();
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    throw std::runtime_error(fmt::format("{} has not answered {} pings within {} ms", phase->target,
                                         phase->plan.warm_up + phase->plan.pings, phase->plan.deadline().count()));
  }

 private:
  std::unique_ptr<IoLoop> loop_;
  Bridge bridge_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::string echo_name_;
  std::optional<MailboxActor> echo_;
};

ActorPingPong::ActorPingPong(const std::string& endpoint) : post_(std::make_unique<PostOffice>(kPinger)) {
  post_->spawn_echo(kLocalEcho);
  post_->dial(endpoint);
}
ActorPingPong::~ActorPingPong() = default;

RoundTrips ActorPingPong::run_local(const PingPlan& plan) { return run(kLocalEcho, plan); }
RoundTrips ActorPingPong::run_remote(const PingPlan& plan) { return run(kRemoteEcho, plan); }

RoundTrips ActorPingPong::run(const std::string& target, const PingPlan& plan) {
  return post_->ping(std::make_shared<Phase>(Phase{.target = target, .plan = plan, .ended = {}}));
}

int serve_actor_echo(const std::string& endpoint) {
  const testing::BlockedSigterm sigterm;
  PostOffice post(kRemoteEcho);
  post.spawn_echo(kRemoteEcho);
  post.listen(endpoint);
  return sigterm.wait_for(kServerLifetime) ? 0 : 1;
}

PayloadBytes heartbeat_payload_bytes() {
  return {.ping = must(encode(heartbeat(kFirstSequence))).size(),
          .answer = must(encode(acknowledgement(kFirstSequence))).size()};
}

}  // namespace troupe::bench

#include "actors/bridge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "comm/control/actor_identity.h"
#include "comm/control/message_codec.h"

namespace troupe::actors {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Bridge::Bridge(IoLoop& loop, std::string self, std::uint64_t incarnation, OrderedDelivery::Limits limits)
    : loop_(loop), self_(std::move(self)), incarnation_(incarnation), delivery_(limits) {}

void Bridge::add_local(const std::string& name, const MailboxActor& actor) {
  std::lock_guard lock(mutex_);
  locals_[name] = actor;
}

void Bridge::remove_local(const std::string& name) {
  std::lock_guard lock(mutex_);
  locals_.erase(name);
}

void Bridge::set_default_route(SocketId socket) {
  std::lock_guard lock(mutex_);
  default_route_ = socket;
}

std::optional<Bridge::Route> Bridge::route_to(const std::string& name) {
  const auto route = routes_.find(name);
  if (route != routes_.end()) return route->second;
  if (default_route_) return Route{*default_route_, ""};
  return std::nullopt;
}

void Bridge::forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  routes_.erase(name);
  delivery_.forget(name);
}

bool Bridge::wait_until_heard(std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  return heard_.wait_for(lock, deadline, [&] { return delivery_.waiting() == 0; });
}

void Bridge::send(const ControlMessage& control) {
  std::unique_lock lock(mutex_);
  if (const auto local = locals_.find(control.to); local != locals_.end()) {
    const MailboxActor actor = local->second;
    lock.unlock();
    caf::anon_send(actor, control);
    return;
  }
  lock.unlock();
  auto payload = encode(control.message);
  if (!payload) {
    log::error("{}: {} for {} cannot be sent: {}", self_, name_of(type_of(control.message)), control.to,
               payload.error().message());
    return;
  }
  Packet packet{
      .envelope = make_envelope(type_of(control.message), control.from.empty() ? self_ : control.from, control.to, 0),
      .payload = std::move(*payload)};
  packet.envelope.incarnation = incarnation_;
  lock.lock();
  if (!OrderedDelivery::repeats_itself(packet.envelope.type)) {
    const auto now = Clock::now();
    auto numbered = delivery_.send(std::move(packet), now);
    if (!numbered) {
      if (unreachable_.allows(control.to))
        log::warn("{}: {} counts as gone; {} for it is dropped", self_, control.to, name_of(type_of(control.message)));
      return;
    }
    packet = std::move(*numbered);
    come_back(now + OrderedDelivery::kFirstRetry);
  }
  const auto route = route_to(packet.envelope.to);
  lock.unlock();
  pass(std::move(packet), route);
}

void Bridge::pass(Packet packet, const std::optional<Route>& route) {
  if (route) {
    loop_.send(route->socket, route->routing_id, packet.envelope, std::move(packet.payload));
    return;
  }
  std::lock_guard lock(mutex_);
  if (unreachable_.allows(packet.envelope.to))
    log::warn("{}: no way to {}; a message of {} waits or is dropped", self_, packet.envelope.to, packet.envelope.from);
}

void Bridge::come_back(OrderedDelivery::Time at) {
  if (comes_back_ && *comes_back_ <= at) return;
  comes_back_ = at;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now());
  loop_.after(std::max(wait, std::chrono::milliseconds(1)), [this] { send_due(); });
}

void Bridge::send_due() {
  std::unique_lock lock(mutex_);
  comes_back_.reset();
  std::vector<std::pair<Packet, std::optional<Route>>> packets;
  for (Packet& packet : delivery_.due(Clock::now())) {
    packet.envelope.incarnation = incarnation_;
    auto route = route_to(packet.envelope.to);
    packets.emplace_back(std::move(packet), std::move(route));
  }
  if (const auto next = delivery_.next_due()) come_back(*next);
  lock.unlock();
  for (auto& [packet, route] : packets) pass(std::move(packet), route);
}

IoLoop::OnMessage Bridge::receiver(PeerJudge judge) {
  return [this, judge = std::move(judge)](SocketId socket, const std::string& routing_id, Envelope envelope,
                                          std::vector<std::byte> payload) {
    if (is_allowed(judge, routing_id, envelope)) receive(socket, routing_id, std::move(envelope), std::move(payload));
  };
}

bool Bridge::is_allowed(const PeerJudge& judge, const std::string& routing_id, const Envelope& envelope) {
  const auto party = judge(loop_.sender(), routing_id, envelope.from);
  if (!party) {
    refuse(routing_id, envelope, party.error().message());
    return false;
  }
  // An acknowledgement only counts messages that its sender has had: every known party may send it.
  if (envelope.type == OrderedDelivery::kAcknowledge) return true;
  if (may_send(*party, envelope.type, party_named(envelope.to))) return true;
  refuse(routing_id, envelope, fmt::format("outside the rights of {}", enum_name(*party)));
  return false;
}

void Bridge::refuse(const std::string& peer, const Envelope& envelope, const std::string& why) {
  if (!refusals_.allows(peer)) return;
  const std::string_view type = name_of(envelope.type);
  log::warn("{}: {} of {} for {} dropped, from the peer {}: {}", self_,
            type.empty() ? fmt::format("a message of type {:#x}", envelope.type) : std::string(type), envelope.from,
            envelope.to, peer, why);
}

void Bridge::receive(SocketId socket, const std::string& routing_id, Envelope envelope,
                     std::vector<std::byte> payload) {
  std::unique_lock lock(mutex_);
  if (!routing_id.empty()) routes_[envelope.from] = {socket, routing_id};
  const auto local = locals_.find(envelope.to);
  if (local == locals_.end()) {
    const auto route = route_to(envelope.to);
    const bool goes_back = route && route->socket == socket && route->routing_id == routing_id;
    lock.unlock();
    pass({.envelope = std::move(envelope), .payload = std::move(payload)}, goes_back ? std::nullopt : route);
    return;
  }
  const MailboxActor actor = local->second;
  const bool is_numbered = envelope.number != 0;
  if (OrderedDelivery::is_farewell(envelope)) routes_.erase(envelope.from);
  const auto now = Clock::now();
  const auto due = delivery_.receive({.envelope = std::move(envelope), .payload = std::move(payload)}, now);
  if (is_numbered) come_back(now + OrderedDelivery::kTellAfter);
  heard_.notify_all();
  // Two threads of the loop do not exist, so what is given below stays in order.
  lock.unlock();
  for (const Packet& packet : due) give(actor, packet);
}

void Bridge::give(const MailboxActor& actor, const Packet& packet) {
  const Envelope& envelope = packet.envelope;
  auto message = decode(envelope.type, packet.payload);
  if (!message) {
    log::warn("{}: message type {:#x} of {} refused: {}", self_, envelope.type, envelope.from,
              message.error().message());
    return;
  }
  if (!tells_of_itself(name_without_life(envelope.from), *message))
    return refuse(envelope.from, envelope, "it tells of somebody else");
  if (auto* join = std::get_if<Join>(&*message)) join->key = loop_.sender().key;
  caf::anon_send(actor, ControlMessage{envelope.from, envelope.to, std::move(*message)});
}

}  // namespace troupe::actors

#include "actors/bridge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "comm/control/message_codec.h"

namespace troupe::actors {

namespace {

/// A routing id may hold any bytes.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

Bridge::Bridge(IoLoop& loop, std::string self, std::uint64_t incarnation)
    : loop_(loop), self_(std::move(self)), incarnation_(incarnation) {}

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

void Bridge::send(const ControlMessage& control) {
  std::unique_lock lock(mutex_);
  if (const auto local = locals_.find(control.to); local != locals_.end()) {
    const MailboxActor actor = local->second;
    lock.unlock();
    caf::anon_send(actor, control);
    return;
  }
  const auto route = route_to(control.to);
  lock.unlock();
  if (!route) {
    log::warn("{}: no way to {}; {} dropped", self_, control.to, name_of(type_of(control.message)));
    return;
  }
  auto payload = encode(control.message);
  if (!payload) {
    log::error("{}: {} for {} cannot be sent: {}", self_, name_of(type_of(control.message)), control.to,
               payload.error().message());
    return;
  }
  Envelope envelope =
      make_envelope(type_of(control.message), control.from.empty() ? self_ : control.from, control.to, 0);
  envelope.incarnation = incarnation_;
  loop_.send(route->socket, route->routing_id, envelope, std::move(*payload));
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
  if (may_send(*party, envelope.type, party_named(envelope.to))) return true;
  refuse(routing_id, envelope, fmt::format("outside the rights of {}", enum_name(*party)));
  return false;
}

void Bridge::refuse(const std::string& peer, const Envelope& envelope, const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (!refusals_.allows(peer)) return;
  const std::string_view type = name_of(envelope.type);
  log::warn("{}: {} of {} for {} dropped, from the peer {}: {}", self_,
            type.empty() ? fmt::format("a message of type {:#x}", envelope.type) : std::string(type), envelope.from,
            envelope.to, printable(peer), why);
}

void Bridge::receive(SocketId socket, const std::string& routing_id, Envelope envelope,
                     std::vector<std::byte> payload) {
  std::unique_lock lock(mutex_);
  if (!routing_id.empty()) routes_[envelope.from] = {socket, routing_id};
  const auto local = locals_.find(envelope.to);
  if (local == locals_.end()) {
    const auto route = route_to(envelope.to);
    lock.unlock();
    if (!route || (route->socket == socket && route->routing_id == routing_id)) {
      log::warn("{}: no way to {}; a message of {} dropped", self_, envelope.to, envelope.from);
      return;
    }
    loop_.send(route->socket, route->routing_id, envelope, std::move(payload));
    return;
  }
  const MailboxActor actor = local->second;
  lock.unlock();
  auto message = decode(envelope.type, payload);
  if (!message) {
    log::warn("{}: message type {:#x} of {} refused: {}", self_, envelope.type, envelope.from,
              message.error().message());
    return;
  }
  if (!tells_of_itself(envelope.from, *message)) return refuse(routing_id, envelope, "it tells of somebody else");
  if (auto* join = std::get_if<Join>(&*message)) join->key = loop_.sender().key;
  caf::anon_send(actor, ControlMessage{envelope.from, envelope.to, std::move(*message)});
}

}  // namespace troupe::actors

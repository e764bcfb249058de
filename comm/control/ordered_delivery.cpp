#include "comm/control/ordered_delivery.h"

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "comm/control/messages.h"

namespace troupe::comm {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLongestRetry{5000};
/// Messages of one addressee that are sent again at once.
constexpr std::size_t kBurst = 64;
constexpr std::byte kEmptyMap{0x80};
constexpr std::uint64_t kFarewell = std::numeric_limits<std::uint64_t>::max();
/// So many ended names are known; older ones have nothing under way any more.
constexpr std::size_t kEndedNames = 1024;

milliseconds pause_after(int tries) {
  return std::min(OrderedDelivery::kFirstRetry * (1 << std::min(tries - 1, 5)), kLongestRetry);
}

}  // namespace

void OrderedDelivery::drop(Stream& stream) {
  stream.kept.clear();
  stream.bytes = 0;
  stream.is_gone = true;
}

std::optional<Packet> OrderedDelivery::send(Packet packet, Time now) {
  const Names names{packet.envelope.from, packet.envelope.to};
  Stream& stream = streams_[names];
  if (stream.is_gone) return std::nullopt;
  if (stream.bytes + packet.payload.size() > limits_.bytes) {
    log::error("{} has not heard of {} messages ({} bytes) of {}; it gets no more", names.second, stream.kept.size(),
               stream.bytes, names.first);
    drop(stream);
    return std::nullopt;
  }
  packet.envelope.number = ++stream.sent;
  packet.envelope.received = stream.had;
  stream.tell_at.reset();
  stream.bytes += packet.payload.size();
  stream.kept.push_back({.packet = packet, .again = now + kFirstRetry});
  return packet;
}

void OrderedDelivery::heard_back(Stream& stream, std::uint64_t received) {
  while (!stream.kept.empty() && stream.kept.front().packet.envelope.number <= received) {
    stream.bytes -= stream.kept.front().packet.payload.size();
    stream.kept.pop_front();
  }
}

std::vector<Packet> OrderedDelivery::receive(Packet packet, Time now) {
  const Envelope& e = packet.envelope;
  const Names names{e.to, e.from};
  if (e.received > 0) {
    if (const auto known = streams_.find(names); known != streams_.end()) heard_back(known->second, e.received);
  }
  std::vector<Packet> due;
  if (e.type == kAcknowledge) {
    if (is_farewell(e)) forget(e.from);
    return due;
  }
  if (std::find(ended_.begin(), ended_.end(), e.from) != ended_.end()) return due;
  if (e.number == 0) {
    due.push_back(std::move(packet));
    return due;
  }
  Stream& stream = streams_[names];
  if (!stream.tell_at) stream.tell_at = now + kTellAfter;
  if (e.number <= stream.had) {
    stream.tell_at = now;  // it was not told, or that got lost
    return due;
  }
  if (stream.early.size() < limits_.early || e.number == stream.had + 1) stream.early.emplace(e.number, packet);
  while (!stream.early.empty() && stream.early.begin()->first == stream.had + 1) {
    due.push_back(std::move(stream.early.begin()->second));
    stream.early.erase(stream.early.begin());
    ++stream.had;
  }
  return due;
}

std::vector<Packet> OrderedDelivery::due(Time now) {
  std::vector<Packet> packets;
  for (auto& [names, stream] : streams_) {
    std::size_t burst = 0;
    for (Kept& kept : stream.kept) {
      if (kept.again > now) continue;
      if (limits_.tries > 0 && kept.tries >= limits_.tries) {
        log::warn("{} answered none of {} messages of {}; it gets no more", names.second, stream.kept.size(),
                  names.first);
        drop(stream);
        break;
      }
      kept.again = now + pause_after(++kept.tries);
      kept.packet.envelope.received = stream.had;
      packets.push_back(kept.packet);
      stream.tell_at.reset();
      if (++burst == kBurst) break;
    }
    if (stream.tell_at && *stream.tell_at <= now) {
      stream.tell_at.reset();
      Envelope word = make_envelope(kAcknowledge, names.first, names.second, 0);
      word.received = stream.had;
      packets.push_back({.envelope = std::move(word), .payload = {kEmptyMap}});
    }
  }
  return packets;
}

std::optional<OrderedDelivery::Time> OrderedDelivery::next_due() const {
  std::optional<Time> next;
  const auto consider = [&](Time at) {
    if (!next || at < *next) next = at;
  };
  for (const auto& [names, stream] : streams_) {
    for (const Kept& kept : stream.kept) consider(kept.again);
    if (stream.tell_at) consider(*stream.tell_at);
  }
  return next;
}

void OrderedDelivery::forget(const std::string& name) {
  std::erase_if(streams_, [&](const auto& entry) { return entry.first.first == name || entry.first.second == name; });
  ended_.push_back(name);
  if (ended_.size() > kEndedNames) ended_.pop_front();
}

bool OrderedDelivery::repeats_itself(std::uint16_t type) noexcept {
  return type == Join::kType || type == Joined::kType || type == Heartbeat::kType || type == HeartbeatAck::kType;
}

Packet OrderedDelivery::farewell(const std::string& from, const std::string& to) {
  Packet packet{.envelope = make_envelope(kAcknowledge, from, to, 0), .payload = {kEmptyMap}};
  packet.envelope.number = kFarewell;
  return packet;
}

bool OrderedDelivery::is_farewell(const Envelope& envelope) {
  return envelope.type == kAcknowledge && envelope.number == kFarewell;
}

std::size_t OrderedDelivery::waiting() const {
  std::size_t waiting = 0;
  for (const auto& [names, stream] : streams_) waiting += stream.kept.size();
  return waiting;
}

}  // namespace troupe::comm

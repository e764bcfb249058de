#include "comm/control/socket_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/log.h"

// Reading and writing: frames of docs/wire.md#frames, queues per peer of docs/wire.md#sockets.

namespace troupe::comm {

namespace {

constexpr int kReceivesPerTurn = 256;
constexpr std::size_t kMaxQueuedMessages = 256;
constexpr std::size_t kMaxQueuedBytes = std::size_t{8} << 20;
constexpr std::size_t kCopyBelow = std::size_t{64} << 10;  // a copy costs less than a hand-over below this

/// A payload that libzmq frees on its own thread; the flag orders our writes before that for tools that cannot see into
/// libzmq.
struct LentBytes {
  std::vector<std::byte> bytes;
  std::atomic<bool> ready{false};
};

void release(void*, void* hint) {
  auto* lent = static_cast<LentBytes*>(hint);
  if (lent->ready.load(std::memory_order_acquire)) delete lent;
}

/// Sends one frame; takes the bytes of a large one unless it fails with EAGAIN.
bool send_bytes(void* socket, std::vector<std::byte>& bytes, int flags) {
  if (bytes.size() < kCopyBelow) return zmq_send(socket, bytes.data(), bytes.size(), flags | ZMQ_DONTWAIT) >= 0;
  auto* lent = new LentBytes{std::move(bytes), {}};
  std::byte* data = lent->bytes.data();
  const std::size_t size = lent->bytes.size();
  lent->ready.store(true, std::memory_order_release);
  zmq_msg_t message;
  zmq_msg_init_data(&message, data, size, release, lent);
  if (zmq_msg_send(&message, socket, flags | ZMQ_DONTWAIT) >= 0) return true;
  const int why = zmq_errno();
  bytes = lent->bytes;  // the message still owns the original
  zmq_msg_close(&message);
  errno = why;
  return false;
}

/// From libzmq's metadata: "User-Id" is what our ZAP handler answered; "Peer-Address" of an ipc peer ends in
/// ":uid:gid:pid", which the kernel gave. Of a tcp peer it is an address, whose colons mean nothing here.
PeerProof proof_of(const ZmqFrame& frame, bool is_ipc) {
  PeerProof proof;
  proof.key = frame.metadata("User-Id");
  if (!is_ipc) return proof;
  std::string address = frame.metadata("Peer-Address");
  std::int64_t numbers[3] = {0, -1, -1};  // pid, gid, uid: from the end
  for (std::int64_t& number : numbers) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos) return proof;
    const char* const end = address.data() + address.size();
    if (std::from_chars(address.data() + colon + 1, end, number).ptr != end) return proof;
    address.resize(colon);
  }
  proof.pid = numbers[0];
  proof.uid = numbers[2];
  return proof;
}

/// Which connection of a front a message came by; 0: none.
std::uint64_t connection_of(const ZmqFrame& frame) {
  const std::string text = frame.metadata(kConnectionProperty);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::size_t bytes_of(const Outgoing& message) { return message.frame.size() + message.payload.size(); }

}  // namespace

std::vector<std::shared_ptr<SocketTable::OpenSocket>> SocketTable::snapshot() const {
  std::vector<std::shared_ptr<OpenSocket>> all;
  all.reserve(sockets_.size());
  for (const auto& [id, socket] : sockets_) all.push_back(socket);
  return all;
}

void SocketTable::add_poll_items(std::vector<zmq_pollitem_t>& items) const {
  for (const auto& [id, socket] : sockets_) {
    const bool wants_room = !socket->is_router && !socket->outboxes.empty();
    items.push_back({socket->handle.get(), 0, static_cast<short>(ZMQ_POLLIN | (wants_room ? ZMQ_POLLOUT : 0)), 0});
    if (socket->monitor) items.push_back({socket->monitor->socket(), 0, ZMQ_POLLIN, 0});
  }
}

bool SocketTable::must_retry_soon() const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [](const auto& entry) { return entry.second->is_router && !entry.second->outboxes.empty(); });
}

bool SocketTable::turn() {
  bool more_to_read = false;
  for (const auto& socket : snapshot()) {
    if (socket->monitor && !socket->closed) read_monitor(*socket);
    // drain: libzmq's notification is edge-triggered inside
    int received = 0;
    while (received < kReceivesPerTurn && !socket->closed && receive_one(*socket)) ++received;
    if (received == kReceivesPerTurn) more_to_read = true;
    if (received < kReceivesPerTurn && socket->front) socket->front->nothing_left();
    if (!socket->closed) flush(*socket);
  }
  return more_to_read;
}

bool SocketTable::receive_one(OpenSocket& socket) {
  const std::size_t wanted = socket.is_router ? 3 : 2;
  ZmqFrame frames[3];
  std::size_t count = 0;
  std::size_t sent_bytes = 0;  // as the front counts them: of all frames but the routing id
  bool more = true;
  while (more && count < wanted) {
    if (!frames[count].receive(socket.handle.get())) return false;
    if (count > 0) sent_bytes += curve_frame_bytes(frames[count].bytes().size());
    more = frames[count].has_more();
    ++count;
  }
  const std::string peer = socket.is_router ? frames[0].text() : socket.endpoint;
  if (more || count < wanted) {
    while (more) {
      ZmqFrame extra;
      more = extra.receive(socket.handle.get()) && extra.has_more();
      sent_bytes += curve_frame_bytes(extra.bytes().size());
    }
    if (socket.front) socket.front->delivered(connection_of(frames[count - 1]), sent_bytes);
    drop_malformed(socket, peer, fmt::format("wanted {} frames", wanted - (socket.is_router ? 1 : 0)));
    return true;
  }
  const std::uint64_t connection = socket.front ? connection_of(frames[count - 1]) : 0;
  if (socket.front) socket.front->delivered(connection, sent_bytes);
  sender_ = socket.is_router ? proof_of(frames[count - 1], socket.is_ipc) : PeerProof{};
  const std::string address = socket.front ? frames[count - 1].metadata(kAddressProperty) : "";
  if (!is_listed(socket, peer, address, connection)) return true;
  if (socket.is_router && socket.strikes.is_quarantined(peer, std::chrono::steady_clock::now())) {
    LoopCounters::add(counters_.malformed);
    return true;
  }
  const auto payload = frames[count - 1].bytes();
  auto envelope = decode_envelope(frames[count - 2].bytes(), payload);
  if (!envelope) {
    drop_malformed(socket, peer, envelope.error().message());
    return true;
  }
  LoopCounters::add(counters_.received);
  guard_.run("a message callback", [&] {
    socket.on_message(socket.id, socket.is_router ? peer : std::string(), std::move(*envelope),
                      {payload.begin(), payload.end()});
  });
  return true;
}

bool SocketTable::is_listed(const OpenSocket& socket, const std::string& peer, const std::string& address,
                            std::uint64_t connection) {
  if (socket.zap_name.empty()) return true;
  const std::string why = zap_.objection(socket.zap_name, sender_.key, address);
  if (why.empty()) return true;
  LoopCounters::add(counters_.refused);
  if (unlisted_log_.allows(sender_.key)) log::warn("{}: a message of {} dropped: {} now", socket.endpoint, peer, why);
  // libzmq's stable API cannot close one connection; the front can
  if (socket.front) socket.front->cut(connection);
  return false;
}

void SocketTable::drop_malformed(OpenSocket& socket, const std::string& peer, const std::string& why) {
  LoopCounters::add(counters_.malformed);
  const bool quarantined = socket.is_router && socket.strikes.strike(peer, std::chrono::steady_clock::now());
  if (!quarantined && !malformed_log_.allows(peer)) return;
  log::warn("{}: dropped a malformed message from {}: {}", socket.endpoint, peer, why);
  if (quarantined)
    log::error("{}: {} sent {} malformed messages; ignored for {} s", socket.endpoint, peer, StrikeList::kStrikes,
               StrikeList::kQuarantine.count());
}

void SocketTable::read_monitor(OpenSocket& socket) {
  using Outcome = HandshakeMonitor::Outcome;
  while (auto event = socket.monitor->next()) {
    if (event->outcome == Outcome::accepted) continue;
    LoopCounters::add(counters_.refused);
    if (!handshake_log_.allows(socket.endpoint)) continue;
    if (event->outcome == Outcome::refused) {
      log::warn("{} refused our key; it must be in the controller's list (token file)", socket.endpoint);
    } else {
      log::warn("{}: the handshake broke off; the other side may have another server key, or none", socket.endpoint);
    }
  }
}

void SocketTable::send(SocketId id, const std::string& routing_id, Outgoing message) {
  const auto it = sockets_.find(id);
  if (it == sockets_.end()) return report_undeliverable(id, routing_id, message.envelope);
  OpenSocket& socket = *it->second;
  if (message.payload.size() > socket.max_payload) {
    log::error("{}: a payload of {} bytes; this socket carries at most {}", socket.endpoint, message.payload.size(),
               socket.max_payload);
    return report_undeliverable(id, routing_id, message.envelope);
  }
  // never overtake what waits for the same peer
  if (socket.outboxes.contains(routing_id)) return queue(socket, routing_id, std::move(message));
  switch (try_send(socket, routing_id, message)) {
    case Sent::yes:
      return;
    case Sent::later:
      return queue(socket, routing_id, std::move(message));
    case Sent::never:
      return report_undeliverable(id, routing_id, message.envelope);
  }
}

SocketTable::Sent SocketTable::try_send(OpenSocket& socket, const std::string& routing_id, Outgoing& message) {
  void* handle = socket.handle.get();
  // only the FIRST frame's result tells about the peer: after a failure there the next frame would be taken for a
  // routing id
  if (socket.is_router && zmq_send(handle, routing_id.data(), routing_id.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    return zmq_errno() == EAGAIN ? Sent::later : Sent::never;
  }
  if (!send_bytes(handle, message.frame, ZMQ_SNDMORE) || !send_bytes(handle, message.payload, 0)) {
    return zmq_errno() == EAGAIN ? Sent::later : Sent::never;
  }
  LoopCounters::add(counters_.sent);
  return Sent::yes;
}

void SocketTable::queue(OpenSocket& socket, const std::string& routing_id, Outgoing message) {
  const std::size_t max_bytes = socket.max_payload > kDefaultMaxPayload ? 16 * socket.max_payload : kMaxQueuedBytes;
  Outbox& outbox = socket.outboxes[routing_id];
  if (outbox.messages.size() >= kMaxQueuedMessages || outbox.bytes + bytes_of(message) > max_bytes) {
    return report_undeliverable(socket.id, routing_id, message.envelope);
  }
  outbox.bytes += bytes_of(message);
  outbox.messages.push_back(std::move(message));
}

void SocketTable::flush(OpenSocket& socket) {
  for (auto it = socket.outboxes.begin(); it != socket.outboxes.end();) {
    it = flush_peer(socket, it->first, it->second) ? socket.outboxes.erase(it) : std::next(it);
  }
}

bool SocketTable::flush_peer(OpenSocket& socket, const std::string& routing_id, Outbox& outbox) {
  const auto now = std::chrono::steady_clock::now();
  while (!outbox.messages.empty()) {
    Outgoing& message = outbox.messages.front();
    const std::size_t bytes = bytes_of(message);
    const bool expired = message.expires <= now;
    const Sent sent = expired ? Sent::never : try_send(socket, routing_id, message);
    if (sent == Sent::later) return false;
    if (sent == Sent::never) report_undeliverable(socket.id, routing_id, message.envelope);
    outbox.bytes -= bytes;
    outbox.messages.pop_front();
  }
  return true;
}

void SocketTable::report_undeliverable(SocketId id, const std::string& routing_id, const Envelope& envelope) {
  LoopCounters::add(counters_.undeliverable);
  if (on_undeliverable_) {
    guard_.run("the report of an undeliverable message", [&] { on_undeliverable_(id, routing_id, envelope); });
  } else if (undeliverable_log_.allows(routing_id)) {
    const std::string& named = routing_id.empty() ? envelope.to : routing_id;
    log::warn("a message of type {:#06x} for {} cannot be delivered", envelope.type,
              named.empty() ? "the peer" : named);
  }
}

}  // namespace troupe::comm

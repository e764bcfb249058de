#include "comm/control/zap.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace troupe::comm {

namespace {

constexpr std::size_t kKeyBytes = 32;

/// Frames of one request (RFC 27).
enum : std::size_t { kVersion, kRequestId, kDomain, kAddress, kServer, kMechanism, kCredential, kRequestFrames };

bool send_frame(void* socket, std::string_view text, bool more) {
  return zmq_send(socket, text.data(), text.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
}

/// One property as ZMTP writes it (RFC 23): lengths in network order.
std::string metadata_of(std::string_view name, std::string_view value) {
  std::string bytes(1, static_cast<char>(name.size()));
  bytes += name;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value.size() >> shift & 0xff);
  return bytes.append(value);
}

}  // namespace

Result<std::unique_ptr<ZapHandler>> ZapHandler::bind(void* context, std::atomic<std::uint64_t>& refused) {
  ZmqSocket socket(zmq_socket(context, ZMQ_REP));
  if (!socket)
    return Error{Errc::unavailable, fmt::format("cannot open the ZAP socket: {}", zmq_strerror(zmq_errno()))};
  set_option(socket.get(), ZMQ_LINGER, 0);
  if (zmq_bind(socket.get(), "inproc://zeromq.zap.01") != 0) {
    return Error{Errc::unavailable, fmt::format("cannot bind the ZAP socket: {}", zmq_strerror(zmq_errno()))};
  }
  return std::unique_ptr<ZapHandler>(new ZapHandler(std::move(socket), refused));
}

std::string ZapHandler::objection(const std::string& server, const std::string& key, const std::string& address) const {
  const auto entry = allowed_.find(server);
  if (entry == allowed_.end()) return "the socket is closed";
  return entry->second.tested == key ? "" : entry->second.clients->objection(key, address);
}

void ZapHandler::answer_all() {
  int events = 0;
  std::size_t size = sizeof events;
  while (zmq_getsockopt(socket_.get(), ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0) answer_one();
}

void ZapHandler::answer_one() {
  std::vector<std::string> frames;
  bool more = true;
  while (more) {
    ZmqFrame frame;
    if (!frame.receive(socket_.get())) return;
    more = frame.has_more();
    if (frames.size() <= kRequestFrames) frames.push_back(frame.text());
  }
  const auto server = allowed_.find(frames.size() > kServer ? frames[kServer] : "");
  // libzmq knows the front's address only; the front knows the peer's
  const auto peer = server != allowed_.end() && server->second.front != nullptr
                        ? server->second.front->peer_in_question()
                        : std::nullopt;
  std::string why, key;
  if (frames.size() != kRequestFrames || frames[kVersion] != "1.0") {
    why = "a malformed ZAP request";
  } else if (frames[kMechanism] != "CURVE" || frames[kCredential].size() != kKeyBytes) {
    why = fmt::format("mechanism {} instead of CURVE", frames[kMechanism]);
  } else if (frames[kDomain] != kZapDomain) {
    why = fmt::format("domain {} instead of {}", frames[kDomain], kZapDomain);
  } else {
    std::array<char, 41> text{};
    zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(frames[kCredential].data()), kKeyBytes);
    key = text.data();
    why = objection(frames[kServer], key, peer ? peer->address : "");
  }
  if (!why.empty()) note_refusal(peer ? peer->address : frames.size() > kAddress ? frames[kAddress] : "?", why);

  void* socket = socket_.get();
  const std::string request_id = frames.size() > kRequestId ? frames[kRequestId] : "";
  // also where they are empty: libzmq takes a property from the peer's own words when we give none
  const std::string metadata = metadata_of(kConnectionProperty, peer ? std::to_string(peer->connection) : "") +
                               metadata_of(kAddressProperty, peer ? peer->address : "");
  const bool sent = send_frame(socket, "1.0", true) && send_frame(socket, request_id, true) &&
                    send_frame(socket, why.empty() ? "200" : "400", true) &&
                    send_frame(socket, why.empty() ? "OK" : "No access", true) &&
                    send_frame(socket, why.empty() ? key : "", true) && send_frame(socket, metadata, false);
  if (!sent) log::error("cannot answer a ZAP request ({}); the client stays out", zmq_strerror(zmq_errno()));
}

void ZapHandler::note_refusal(const std::string& address, const std::string& why) {
  if (quiet_) return;
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (by_address_.allows(address.substr(0, address.rfind(':'))))
    log::warn("refused a connection from {} ({} refused so far): {}", address, refused_.load(std::memory_order_relaxed),
              why);
}

}  // namespace troupe::comm

#include "comm/bridge/router_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/ids.h"
#include "comm/bridge/bridge_address.h"
#include "comm/bridge/bridge_message.h"

namespace troupe::comm {

namespace {

constexpr int kLingerMs = 500;

}  // namespace

Result<RouterSocket> RouterSocket::open(const std::string& bind, std::size_t max_message_bytes) {
  RouterSocket out;
  out.context_.reset(zmq_ctx_new());
  if (!out.context_)
    return Error{Errc::resource_exhausted, fmt::format("no descriptors left: {}", std::strerror(errno))};
  out.socket_.reset(zmq_socket(out.context_.get(), ZMQ_ROUTER));
  if (!out.socket_)
    return Error{Errc::resource_exhausted, fmt::format("no ZeroMQ socket: {}", zmq_strerror(zmq_errno()))};
  void* socket = out.socket_.get();
  const auto bytes = static_cast<std::int64_t>(max_message_bytes);
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof bytes);
  set_option(socket, ZMQ_LINGER, kLingerMs);
  set_option(socket, ZMQ_ROUTER_MANDATORY, 1);  // a worker that is not connected any more is gone
  std::string address = bind;
  if (bind.empty()) {
    const uid_t own = ::geteuid();
    if (zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &own, sizeof own) != 0)
      return Error{Errc::unavailable, fmt::format("the bridge's address cannot be kept to this user's processes: {}",
                                                  zmq_strerror(zmq_errno()))};
    address = "ipc://@troupe-bridge-" + to_hex(new_message_id());
  } else {
    TROUPE_ASSIGN(out.address_lock_, take_bridge_address(bind));
  }
  if (zmq_bind(socket, address.c_str()) != 0)
    return Error{Errc::unavailable, fmt::format("env.bridge.bind: {} cannot be bound: {}; each simulator wants an "
                                                "address of its own",
                                                address, zmq_strerror(zmq_errno()))};
  out.endpoint_ = last_endpoint(socket);
  return out;
}

std::optional<RouterSocket::Received> RouterSocket::receive() {
  ZmqFrame peer, magic, content, rest;
  if (!peer.receive(get())) return std::nullopt;
  int frames = 1;
  bool more = peer.has_more();
  for (ZmqFrame* next : {&magic, &content}) {
    if (!more) break;
    more = next->receive(get()) && next->has_more();
    ++frames;
  }
  Received out{.peer = peer.text()};
  if (frames == 3 && !more && magic.text() == kBridgeMagic)
    out.content.emplace(content.bytes().begin(), content.bytes().end());
  while (more) more = rest.receive(get()) && rest.has_more();
  return out;
}

bool RouterSocket::send(const std::string& peer, std::span<const std::byte> content) {
  constexpr int more = ZMQ_DONTWAIT | ZMQ_SNDMORE;
  return zmq_send(get(), peer.data(), peer.size(), more) >= 0 &&
         zmq_send(get(), kBridgeMagic, std::strlen(kBridgeMagic), more) >= 0 &&
         zmq_send(get(), content.data(), content.size(), ZMQ_DONTWAIT) >= 0;
}

}  // namespace troupe::comm

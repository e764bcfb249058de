#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "comm/control/curve_keys.h"
#include "comm/control/endpoint.h"
#include "comm/control/socket_table.h"

// Opening and closing: socket options and rules for keys of docs/wire.md#sockets and docs/wire.md#keys.

namespace troupe::comm {

namespace {

constexpr std::size_t kEnvelopeBytes = 1024;
constexpr std::size_t kMaxRoutingId = 64;
constexpr std::size_t kMaxConnections = 4096;
constexpr std::chrono::milliseconds kHandshake{2000};
/// Bytes that one peer may have sent and the loop not read. With libzmq's own needs, an unfinished message costs less
/// than 32 MiB.
constexpr std::size_t kMaxUnread = std::size_t{24} << 20;
constexpr std::size_t kOnePiece = std::size_t{64} << 10;

bool is_routing_id(const std::string& id) {
  return !id.empty() && id.size() <= kMaxRoutingId && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '#' || c == '/' || c == '_' || c == '-';
  });
}

void set_common_options(void* socket, std::size_t max_payload, const Endpoint& endpoint) {
  const auto max_message = static_cast<std::int64_t>(max_payload + kEnvelopeBytes);
  set_option(socket, ZMQ_LINGER, 500);
  set_option(socket, ZMQ_SNDHWM, 1000);
  set_option(socket, ZMQ_RCVHWM, 1000);
  set_option(socket, ZMQ_IMMEDIATE, 1);
  set_option(socket, ZMQ_RECONNECT_IVL, 100);
  set_option(socket, ZMQ_RECONNECT_IVL_MAX, 2000);
  set_option(socket, ZMQ_HANDSHAKE_IVL, static_cast<int>(kHandshake.count()));
  set_option(socket, ZMQ_CONNECT_TIMEOUT, 3000);
  set_option(socket, ZMQ_TCP_KEEPALIVE, 1);
  set_option(socket, ZMQ_TCP_KEEPALIVE_IDLE, 10);
  set_option(socket, ZMQ_TCP_KEEPALIVE_INTVL, 5);
  set_option(socket, ZMQ_TCP_KEEPALIVE_CNT, 3);
  set_option(socket, ZMQ_BACKLOG, 4096);
  set_option(socket, ZMQ_IPV6, endpoint.host.starts_with('[') ? 1 : 0);
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_message, sizeof max_message);
}

Error keys_refused() {
  return {Errc::invalid_argument,
          "a CURVE key is not 40 characters of Z85; take keys from a token file or generate_keypair()"};
}

/// Where the self-test dials a socket that listens on every address.
std::string dialled(std::string endpoint) {
  for (const auto& [any, own] :
       {std::pair<std::string, std::string>{"//0.0.0.0:", "//127.0.0.1:"}, {"//[::]:", "//[::1]:"}}) {
    if (const auto at = endpoint.find(any); at != std::string::npos) endpoint.replace(at, any.size(), own);
  }
  return endpoint;
}

}  // namespace

Result<std::shared_ptr<SocketTable::OpenSocket>> SocketTable::open(int type, const std::string& endpoint,
                                                                   IoLoop::OnMessage on_message,
                                                                   std::size_t max_payload) {
  TROUPE_ASSIGN(const Endpoint parsed, parse_endpoint(endpoint));
  auto socket = std::make_shared<OpenSocket>();
  socket->id = SocketId{next_id_++};
  socket->is_router = type == ZMQ_ROUTER;
  socket->is_ipc = parsed.kind == Endpoint::Kind::ipc;
  socket->max_payload = max_payload;
  socket->endpoint = endpoint;
  socket->on_message = std::move(on_message);
  socket->handle.reset(zmq_socket(context_, type));
  if (!socket->handle)
    return Error{Errc::resource_exhausted,
                 fmt::format("cannot open a socket for {}: {}", endpoint, zmq_strerror(zmq_errno()))};
  set_common_options(socket->handle.get(), max_payload, parsed);
  return socket;
}

Result<SocketTable::Bound> SocketTable::bind(const std::string& endpoint, IoLoop::OnMessage on_message,
                                             const std::optional<CurveServer>& curve, std::size_t max_payload) {
  TROUPE_ASSIGN(const Endpoint parsed, parse_endpoint(endpoint));
  if (!curve && parsed.kind == Endpoint::Kind::tcp && !is_loopback(parsed)) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} can be reached from other machines and has no keys; give it a CURVE key and a list of client "
                    "keys, or listen on 127.0.0.1 or ipc",
                    endpoint)};
  }
  if (parsed.kind == Endpoint::Kind::ipc) TROUPE_TRY(prepare_ipc_folder(parsed));
  TROUPE_ASSIGN(auto socket, open(ZMQ_ROUTER, endpoint, std::move(on_message), max_payload));
  void* handle = socket->handle.get();
  set_option(handle, ZMQ_ROUTER_MANDATORY, 1);
  set_option(handle, ZMQ_ROUTER_HANDOVER, 0);
  std::string public_key;
  if (curve) {
    TROUPE_ASSIGN(public_key, public_key_of(curve->secret_key));
    if (std::any_of(curve->allowed_clients.begin(), curve->allowed_clients.end(),
                    [](const std::string& key) { return key.size() != 40; })) {
      return keys_refused();
    }
    socket->zap_name = fmt::format("s{}", static_cast<std::uint32_t>(socket->id));
    set_option(handle, ZMQ_CURVE_SERVER, 1);
    if (!set_option(handle, ZMQ_CURVE_SECRETKEY, curve->secret_key) ||
        !set_option(handle, ZMQ_ZAP_DOMAIN, kZapDomain) || !set_option(handle, ZMQ_ROUTING_ID, socket->zap_name)) {
      return keys_refused();
    }
    auto clients = curve->live_clients;
    if (!clients) {
      ClientKeys::Ranges keys;
      for (const std::string& key : curve->allowed_clients) keys.emplace(key, std::nullopt);
      clients = std::make_shared<const ClientKeys>(std::move(keys));
    }
    zap_.set_allowed(socket->zap_name, std::move(clients));
  }
  if (curve && parsed.kind == Endpoint::Kind::tcp) {
    if (auto bound = bind_front(*socket, parsed); !bound) {
      zap_.forget(socket->zap_name);
      return bound.error();
    }
  } else if (zmq_bind(handle, endpoint.c_str()) != 0) {
    zap_.forget(socket->zap_name);
    const Errc code = zmq_errno() == EADDRINUSE ? Errc::unavailable : Errc::invalid_argument;
    return Error{code, fmt::format("cannot listen on {}: {}", endpoint, zmq_strerror(zmq_errno()))};
  } else {
    socket->endpoint = last_endpoint(handle);
  }
  if (curve) {
    if (auto tested = test_curve_server(context_, zap_, socket->zap_name, dialled(socket->endpoint), public_key);
        !tested) {
      zap_.forget(socket->zap_name);
      return tested.error();
    }
  }
  sockets_[socket->id] = socket;
  return Bound{socket->id, socket->endpoint};
}

Result<void> SocketTable::bind_front(OpenSocket& socket, const Endpoint& endpoint) {
  TROUPE_ASSIGN(const std::string backend, bind_backend(socket.handle.get()));
  const std::size_t frame = curve_frame_bytes(socket.max_payload + kEnvelopeBytes);
  TROUPE_ASSIGN(socket.front,
                ZmtpFront::start({.host = endpoint.host,
                                  .port = endpoint.port == "*" ? std::uint16_t{0}
                                                               : static_cast<std::uint16_t>(std::stoi(endpoint.port)),
                                  .backend = backend,
                                  .has_keys = true,
                                  .max_message_bytes = frame,
                                  .max_unread_bytes = std::max(kMaxUnread, 2 * (frame + kEnvelopeBytes) + kOnePiece),
                                  .max_connections = kMaxConnections,
                                  .handshake_timeout = kHandshake,
                                  .refused = &counters_.refused}));
  zap_.set_front(socket.zap_name, *socket.front);
  socket.endpoint = socket.front->endpoint();
  return {};
}

Result<SocketId> SocketTable::connect(const std::string& endpoint, const std::string& routing_id,
                                      IoLoop::OnMessage on_message, const std::optional<CurveClient>& curve,
                                      std::size_t max_payload) {
  TROUPE_ASSIGN(const Endpoint parsed, parse_endpoint(endpoint));
  if (!is_routing_id(routing_id)) {
    return Error{Errc::invalid_argument, fmt::format("the routing id \"{}\" is not 1 to {} characters of [a-z0-9.#/_-]",
                                                     routing_id, kMaxRoutingId)};
  }
  if (parsed.port == "*")
    return Error{Errc::invalid_argument, fmt::format("cannot dial {}: it names no port", endpoint)};
  if (!curve && parsed.kind == Endpoint::Kind::tcp && !is_loopback(parsed)) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} is another machine, which only talks with keys; pass the controller's token file", endpoint)};
  }
  TROUPE_ASSIGN(auto socket, open(ZMQ_DEALER, endpoint, std::move(on_message), max_payload));
  void* handle = socket->handle.get();
  set_option(handle, ZMQ_ROUTING_ID, routing_id);
  if (curve) {
    if (!set_option(handle, ZMQ_CURVE_SERVERKEY, curve->server_key) ||
        !set_option(handle, ZMQ_CURVE_PUBLICKEY, curve->public_key) ||
        !set_option(handle, ZMQ_CURVE_SECRETKEY, curve->secret_key)) {
      return keys_refused();
    }
  }
  TROUPE_ASSIGN(socket->monitor, HandshakeMonitor::attach(context_, handle));
  if (zmq_connect(handle, endpoint.c_str()) != 0) {
    return Error{Errc::invalid_argument, fmt::format("cannot dial {}: {}", endpoint, zmq_strerror(zmq_errno()))};
  }
  sockets_[socket->id] = socket;
  return socket->id;
}

void SocketTable::close(SocketId id) {
  const auto it = sockets_.find(id);
  if (it == sockets_.end()) return;
  // a turn under way may hold it still: closed stops its callbacks
  it->second->closed = true;
  if (!it->second->zap_name.empty()) zap_.forget(it->second->zap_name);
  if (it->second->front) {
    it->second->front->finish();
    std::erase_if(closing_fronts_, [](const auto& front) { return front->has_ended(); });
    closing_fronts_.push_back(std::move(it->second->front));
  }
  sockets_.erase(it);
}

void SocketTable::close_all() {
  for (const auto& socket : snapshot()) {
    flush(*socket);
    close(socket->id);
  }
}

}  // namespace troupe::comm

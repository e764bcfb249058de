#include <fmt/format.h>

#include <array>
#include <optional>

#include "comm/control/curve_keys.h"
#include "comm/control/handshake_monitor.h"
#include "comm/control/zap.h"

namespace troupe::comm {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kDeadline = 5s;

/// Dials the server with `keys` and says how the handshake ended; nothing before the deadline.
std::optional<HandshakeMonitor::Outcome> try_handshake(void* context, ZapHandler& zap, const std::string& endpoint,
                                                       const std::string& server_key, const CurveKeyPair& keys) {
  ZmqSocket client(zmq_socket(context, ZMQ_DEALER));
  if (!client) return std::nullopt;
  set_option(client.get(), ZMQ_LINGER, 0);
  set_option(client.get(), ZMQ_HANDSHAKE_IVL, 2000);
  set_option(client.get(), ZMQ_IPV6, endpoint.starts_with("tcp://[") ? 1 : 0);
  set_option(client.get(), ZMQ_CURVE_SERVERKEY, server_key);
  set_option(client.get(), ZMQ_CURVE_PUBLICKEY, keys.public_key);
  set_option(client.get(), ZMQ_CURVE_SECRETKEY, keys.secret_key);
  auto monitor = HandshakeMonitor::attach(context, client.get());
  if (!monitor || zmq_connect(client.get(), endpoint.c_str()) != 0) return std::nullopt;

  const auto give_up = Clock::now() + kDeadline;
  while (Clock::now() < give_up) {
    std::array<zmq_pollitem_t, 2> items{{{zap.socket(), 0, ZMQ_POLLIN, 0}, {(*monitor)->socket(), 0, ZMQ_POLLIN, 0}}};
    if (zmq_poll(items.data(), static_cast<int>(items.size()), 50) < 0 && zmq_errno() != EINTR) return std::nullopt;
    zap.answer_all();
    if (auto event = (*monitor)->next()) return event->outcome;
  }
  return std::nullopt;
}

}  // namespace

Result<void> test_curve_server(void* context, ZapHandler& zap, const std::string& server, const std::string& endpoint,
                               const std::string& server_public_key) {
  using Outcome = HandshakeMonitor::Outcome;
  TROUPE_ASSIGN(const CurveKeyPair unlisted, generate_keypair());
  TROUPE_ASSIGN(const CurveKeyPair listed, generate_keypair());
  zap.set_quiet(true);
  const auto stranger = try_handshake(context, zap, endpoint, server_public_key, unlisted);
  zap.test_with(server, listed.public_key);
  const auto friendly = try_handshake(context, zap, endpoint, server_public_key, listed);
  zap.test_with(server, "");
  zap.set_quiet(false);
  if (!stranger || !friendly) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("{}: the test handshake did not end within {} s", endpoint, kDeadline.count())};
  }
  if (*stranger != Outcome::refused) {
    return Error{
        Errc::failed_precondition,
        fmt::format("{}: a key that is not listed was not refused; the socket would be open to anybody", endpoint)};
  }
  if (*friendly != Outcome::accepted) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: a listed key was refused; nobody could connect", endpoint)};
  }
  return {};
}

}  // namespace troupe::comm

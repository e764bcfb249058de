#include "comm/front/front_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "comm/front/zmtp_format.h"

namespace troupe::comm {

namespace {

bool is_over(ssize_t got) { return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR); }

}  // namespace

ssize_t BytePipe::fill(int fd) {
  if (is_empty()) begin_ = end_ = 0;
  bytes_.resize(kBytes);
  const ssize_t got = ::recv(fd, bytes_.data() + end_, kBytes - end_, MSG_DONTWAIT);
  fresh_ = static_cast<std::size_t>(std::max<ssize_t>(0, got));
  end_ += fresh_;
  return got;
}

bool BytePipe::drain(int fd) {
  const ssize_t sent = ::send(fd, bytes_.data() + begin_, end_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  begin_ += static_cast<std::size_t>(sent);
  return true;
}

FrontConnection::FrontConnection(std::uint64_t number, FileDescriptor peer, std::string peer_address,
                                 const Limits& limits)
    : id(number),
      address(std::move(peer_address)),
      client(std::move(peer)),
      meter(limits.meter, limits.has_keys),
      limits_(limits) {}

const char* FrontConnection::read_client() {
  const ssize_t got = up.fill(client.get());
  if (is_over(got)) ended = true;
  if (got <= 0) return nullptr;
  received_bytes += static_cast<std::uint64_t>(got);
  if (limits_.has_keys && !is_known) return handshake.add_client(up.fresh());
  if (const char* wrong = meter.add(up.fresh())) return wrong;
  if (limits_.has_keys) return nullptr;
  is_known = meter.has_shaken_hands();
  const bool is_inside = meter.pending_bytes() != 0;
  if (is_inside && (!in_message || messages_then_ != meter.messages())) message_since = Clock::now();
  in_message = is_inside;
  messages_then_ = meter.messages();
  return nullptr;
}

void FrontConnection::read_backend() {
  const ssize_t got = down.fill(backend.get());
  if (is_over(got)) backend_ended = true;
  if (got <= 0 || !limits_.has_keys || is_known) return;
  handshake.add_server(down.fresh());
  is_known = handshake.stage() == CurveHandshake::Stage::ready;
}

void FrontConnection::send_up() {
  if (up.is_empty() || up.drain(backend.get())) return;
  is_backend_deaf_ = true;
  up.clear();
}

void FrontConnection::send_down() {
  if (down.is_empty() || down.drain(client.get())) return;
  is_client_deaf_ = true;
  down.clear();
}

std::uint64_t FrontConnection::unread_bytes() const {
  const std::uint64_t delivered = account->delivered.load();
  return meter.announced_bytes() > delivered ? meter.announced_bytes() - delivered : 0;
}

bool FrontConnection::may_pass() {
  if (received_bytes < zmtp::kSignature) return false;  // every peer sends it at once
  if (!limits_.has_keys) return true;
  // libzmq gets an INITIATE whole or not at all, so that its turn is short
  if (!is_known) return handshake.stage() != CurveHandshake::Stage::initiate;
  account->is_held = true;  // first: what is delivered after the look below wakes the front
  if (unread_bytes() > limits_.unread_bytes) return false;
  account->is_held = false;
  num_held_ticks = 0;
  return true;
}

}  // namespace troupe::comm

#include "bench/actors/raw_ping_pong.h"

#include <fmt/format.h>
#include <stdio.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(fmt::format("raw ping: {}: {}", what, zmq_strerror(zmq_errno())));
}

ZmqSocket open_socket(void* context, int type, std::chrono::milliseconds patience) {
  ZmqSocket socket(zmq_socket(context, type));
  if (!socket) fail("cannot open a socket");
  set_option(socket.get(), ZMQ_LINGER, 0);
  set_option(socket.get(), ZMQ_RCVTIMEO, static_cast<int>(patience.count()));
  set_option(socket.get(), ZMQ_SNDTIMEO, static_cast<int>(patience.count()));
  return socket;
}

}  // namespace

RawPingPong::RawPingPong(const std::string& endpoint, PayloadBytes bytes)
    : bytes_(bytes),
      context_(zmq_ctx_new()),
      dealer_(open_socket(context_.get(), ZMQ_DEALER, std::chrono::seconds(10))) {
  if (zmq_connect(dealer_.get(), endpoint.c_str()) != 0) fail("cannot dial " + endpoint);
}

RoundTrips RawPingPong::run(const PingPlan& plan) {
  const std::vector<char> ping(bytes_.ping);
  std::vector<char> answer(bytes_.answer);
  RoundTrips microseconds;
  microseconds.reserve(static_cast<std::size_t>(plan.pings));
  const auto deadline = Clock::now() + plan.deadline();
  for (int i = 0; i < plan.warm_up + plan.pings; ++i) {
    const auto begin = Clock::now();
    if (begin > deadline) {
      throw std::runtime_error(fmt::format("raw ping: only {} round trips within {} ms", i, plan.deadline().count()));
    }
    if (zmq_send(dealer_.get(), ping.data(), ping.size(), 0) < 0) fail("cannot send");
    const int received = zmq_recv(dealer_.get(), answer.data(), answer.size(), 0);
    if (received < 0) fail("no answer");
    const auto end = Clock::now();
    if (i >= plan.warm_up) microseconds.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    if (static_cast<std::size_t>(received) != answer.size()) {
      throw std::runtime_error(fmt::format("raw ping: an answer of {} bytes, wanted {}", received, answer.size()));
    }
  }
  return microseconds;
}

int serve_raw_echo(const std::string& endpoint, std::size_t answer_bytes) {
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket router = open_socket(context.get(), ZMQ_ROUTER, kServerLifetime);
  if (zmq_bind(router.get(), endpoint.c_str()) != 0) fail("cannot listen on " + endpoint);
  std::array<char, 256> peer{}, body{};
  const std::vector<char> answer(answer_bytes);
  for (;;) {
    const int peer_bytes = zmq_recv(router.get(), peer.data(), peer.size(), 0);
    if (peer_bytes < 0 && zmq_errno() == EAGAIN) break;
    if (peer_bytes < 0 || zmq_recv(router.get(), body.data(), body.size(), 0) < 0) fail("cannot receive");
    if (zmq_send(router.get(), peer.data(), static_cast<std::size_t>(peer_bytes), ZMQ_SNDMORE) < 0 ||
        zmq_send(router.get(), answer.data(), answer.size(), 0) < 0) {
      fail("cannot answer");
    }
  }
  fmt::print(stderr, "raw echo: nothing came for {} minutes\n", kServerLifetime.count());
  return 1;
}

}  // namespace troupe::bench

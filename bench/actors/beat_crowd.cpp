#include "bench/actors/beat_crowd.h"

#include <fmt/format.h>

#include <stdexcept>
#include <thread>

#include "bench/support/failures.h"
#include "comm/control/actor_identity.h"
#include "comm/control/envelope.h"
#include "comm/control/message_codec.h"
#include "workers/controller/join_rules.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{30'000};

Message heartbeat(const std::string& address, std::uint64_t sequence) {
  return Heartbeat{
      .node = name_without_life(address), .sequence = sequence, .free_memory_bytes = std::int64_t{8} << 30};
}

}  // namespace

BeatCrowd::BeatCrowd(const Token& token, int nodes, bool joins) : context_(zmq_ctx_new()) {
  for (int i = 0; i < nodes; ++i) {
    Node node{.address = fmt::format("n{}#{}", 100 + i, 1'000'000 + i),
              .line = ZmqSocket(zmq_socket(context_.get(), ZMQ_DEALER))};
    set_option(node.line.get(), ZMQ_LINGER, 0);
    set_option(node.line.get(), ZMQ_RCVTIMEO, static_cast<int>(kPatience.count()));
    set_option(node.line.get(), ZMQ_ROUTING_ID, node.address);
    set_option(node.line.get(), ZMQ_CURVE_SERVERKEY, token.server_key);
    set_option(node.line.get(), ZMQ_CURVE_PUBLICKEY, token.public_key);
    set_option(node.line.get(), ZMQ_CURVE_SECRETKEY, token.secret_key);
    if (zmq_connect(node.line.get(), token.endpoint.c_str()) != 0)
      throw std::runtime_error(fmt::format("cannot dial {}: {}", token.endpoint, zmq_strerror(zmq_errno())));
    nodes_.push_back(std::move(node));
  }
  for (Node& node : nodes_) items_.push_back({node.line.get(), 0, ZMQ_POLLIN, 0});
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Join join;
    join.name = name_without_life(nodes_[i].address);
    join.incarnation = 1'000'000 + i;
    join.cpus = 1;
    join.memory_bytes = 1 << 30;
    describe_build(join);
    send(nodes_[i], joins ? Message(join) : heartbeat(nodes_[i].address, sequence_));
    if (!receive(nodes_[i], 0)) throw std::runtime_error(nodes_[i].address + " was not answered");
  }
}

void BeatCrowd::send(Node& node, const Message& message) {
  const auto payload = must(encode(message));
  const auto envelope = must(encode_envelope(make_envelope(type_of(message), node.address, "controller", 0), payload));
  if (zmq_send(node.line.get(), envelope.data(), envelope.size(), ZMQ_SNDMORE) < 0 ||
      zmq_send(node.line.get(), payload.data(), payload.size(), 0) < 0)
    throw std::runtime_error(fmt::format("cannot send: {}", zmq_strerror(zmq_errno())));
}

void BeatCrowd::beat(Node& node) { send(node, heartbeat(node.address, ++sequence_)); }

bool BeatCrowd::receive(Node& node, int flags) {
  char frame[4096];
  if (zmq_recv(node.line.get(), frame, sizeof frame, flags) < 0) return false;
  return zmq_recv(node.line.get(), frame, sizeof frame, flags) >= 0;
}

std::vector<std::size_t> BeatCrowd::wait(std::chrono::milliseconds patience) {
  std::vector<std::size_t> answered;
  if (zmq_poll(items_.data(), static_cast<int>(items_.size()), static_cast<long>(patience.count())) <= 0)
    return answered;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].revents != 0 && receive(nodes_[i], ZMQ_DONTWAIT)) answered.push_back(i);
  }
  return answered;
}

std::chrono::duration<double> BeatCrowd::flood(int beats) {
  const auto begin = Clock::now();
  int sent = 0, answered = 0;
  for (Node& node : nodes_) {
    beat(node);
    ++sent;
  }
  while (answered < beats) {
    const auto ready = wait(kPatience);
    if (ready.empty()) throw std::runtime_error(fmt::format("only {} of {} beats were answered", answered, beats));
    for (const std::size_t i : ready) {
      ++answered;
      if (sent < beats) {
        beat(nodes_[i]);
        ++sent;
      }
    }
  }
  return Clock::now() - begin;
}

RoundTrips BeatCrowd::one_by_one(int beats) {
  RoundTrips microseconds;
  microseconds.reserve(static_cast<std::size_t>(beats));
  for (int i = 0; i < beats; ++i) {
    const auto begin = Clock::now();
    beat(nodes_.front());
    if (!receive(nodes_.front(), 0)) throw std::runtime_error("a beat was not answered");
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return microseconds;
}

void BeatCrowd::at_pace(int seconds) {
  const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) / static_cast<int>(nodes_.size());
  auto due = Clock::now();
  int waiting = 0;
  for (int round = 0; round < seconds; ++round) {
    for (Node& node : nodes_) {
      std::this_thread::sleep_until(due += pause);
      beat(node);
      ++waiting;
    }
    // answers of this second; what is under way comes with the next
    for (auto ready = wait(std::chrono::milliseconds(0)); !ready.empty(); ready = wait(std::chrono::milliseconds(0)))
      waiting -= static_cast<int>(ready.size());
  }
  while (waiting > 0) {
    const auto ready = wait(kPatience);
    if (ready.empty()) throw std::runtime_error(fmt::format("{} beats were not answered", waiting));
    waiting -= static_cast<int>(ready.size());
  }
}

FrameBytes BeatCrowd::answer_bytes() {
  const Message answer = HeartbeatAck{.sequence = 1'000'000, .term = 1};
  const auto payload = must(encode(answer));
  return {.envelope =
              must(encode_envelope(make_envelope(type_of(answer), "controller", "n100#1000000", 0), payload)).size(),
          .payload = payload.size()};
}

}  // namespace troupe::bench

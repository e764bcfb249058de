#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bridge/bridge_message.h"
#include "comm/control/zmq_handles.h"

namespace troupe::comm {

/// A worker that says what a test tells it to.
class ScriptedWorker {
 public:
  static constexpr int kPatienceMs = 20'000;

  explicit ScriptedWorker(const std::string& endpoint)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_.get(), ZMQ_DEALER)) {
    set_option(socket_.get(), ZMQ_LINGER, 0);
    set_option(socket_.get(), ZMQ_RCVTIMEO, kPatienceMs);
    EXPECT_EQ(zmq_connect(socket_.get(), endpoint.c_str()), 0);
  }

  /// Joins; the hub's answer.
  BridgeMessage hello(WireMap body) {
    say({.type = "HELLO", .body = std::move(body)});
    BridgeMessage answer = hear();
    session_ = answer.session;
    return answer;
  }
  BridgeMessage hello(const std::string& name) {
    return hello(WireMap{{"name", name}, {"env", "toy"}, {"options", "{}"}, {"spec", "{}"}});
  }
  std::int64_t session() const { return session_; }

  void say(BridgeMessage message) { send({kBridgeMagic, text_of(encode_bridge_message(std::move(message)))}); }
  /// In this session.
  void say(const std::string& type, WireMap body = {}) {
    say({.type = type, .session = session_, .body = std::move(body)});
  }
  void answer(const BridgeMessage& question, const std::string& type, WireMap body = {}) {
    say({.type = type, .session = question.session, .request = question.request, .body = std::move(body)});
  }
  void send(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i)
      EXPECT_GE(zmq_send(socket_.get(), frames[i].data(), frames[i].size(), i + 1 < frames.size() ? ZMQ_SNDMORE : 0),
                0);
  }

  /// The next message; fails the test where none comes.
  BridgeMessage hear() {
    std::vector<std::byte> bytes(1 << 16);
    char magic[8];
    if (zmq_recv(socket_.get(), magic, sizeof magic, 0) != 4) {
      ADD_FAILURE() << "the hub said nothing";
      return {};
    }
    const int size = zmq_recv(socket_.get(), bytes.data(), bytes.size(), 0);
    auto message = decode_bridge_message(std::span(bytes).first(static_cast<std::size_t>(std::max(size, 0))), 1 << 20);
    EXPECT_TRUE(message) << (message ? "" : message.error().message());
    return message ? std::move(*message) : BridgeMessage{};
  }
  /// The next message of this type; others are passed over.
  BridgeMessage hear(const std::string& type) {
    for (int i = 0; i < 100; ++i) {
      BridgeMessage message = hear();
      if (message.type == type || message.type.empty()) return message;
    }
    ADD_FAILURE() << "no " << type;
    return {};
  }

 private:
  static std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  ZmqContext context_;
  ZmqSocket socket_;
  std::int64_t session_ = 0;
};

}  // namespace troupe::comm

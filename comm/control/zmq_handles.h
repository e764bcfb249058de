#pragma once

#include <zmq.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe::comm {

// Internal to comm/: owners of ZeroMQ's C handles. A socket is used and closed by the loop's thread only.

struct ZmqContextDeleter {
  void operator()(void* context) const noexcept { zmq_ctx_term(context); }
};
struct ZmqSocketDeleter {
  void operator()(void* socket) const noexcept { zmq_close(socket); }
};
using ZmqContext = std::unique_ptr<void, ZmqContextDeleter>;
using ZmqSocket = std::unique_ptr<void, ZmqSocketDeleter>;

/// One received frame.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  ~ZmqFrame() { zmq_msg_close(&message_); }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;

  /// False: nothing to read now.
  bool receive(void* socket) { return zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT) >= 0; }
  /// Whether the message has a further frame.
  bool has_more() const { return zmq_msg_more(&message_) != 0; }
  std::span<const std::byte> bytes() const {
    auto* message = const_cast<zmq_msg_t*>(&message_);  // zmq_msg_data takes no const
    return {static_cast<const std::byte*>(zmq_msg_data(message)), zmq_msg_size(&message_)};
  }
  /// A property of the connection that the frame came by (zmq_msg_gets); empty: it has none of that name.
  std::string metadata(const char* name) const {
    const char* value = zmq_msg_gets(&message_, name);
    return value == nullptr ? std::string() : std::string(value);
  }
  std::string text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

 private:
  zmq_msg_t message_;
};

/// Where a socket was bound last, with the port that the system chose; empty: nowhere.
inline std::string last_endpoint(void* socket) {
  std::array<char, 512> text{};
  std::size_t size = text.size();
  return zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text.data(), &size) == 0 ? std::string(text.data()) : std::string();
}

/// Sets an option that cannot fail for the socket's type.
inline void set_option(void* socket, int option, int value) { zmq_setsockopt(socket, option, &value, sizeof value); }
inline bool set_option(void* socket, int option, std::string_view value) {
  return zmq_setsockopt(socket, option, value.data(), value.size()) == 0;
}

}  // namespace troupe::comm

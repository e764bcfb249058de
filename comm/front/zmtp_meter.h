#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/namespaces.h"

namespace troupe::comm {

/// Follows the bytes that a ZeroMQ peer sends (ZMTP 3.x, ZeroMQ RFC 23 and 37) and says when there are too many of
/// them. libzmq bounds one frame, never a message of many, and keeps all of a message until its last frame. Not
/// thread-safe.
class ZmtpMeter {
 public:
  struct Limits {
    /// Of all frames of one message together.
    std::size_t message_bytes = 0;
    std::size_t message_frames = 16;
    /// Of one command: handshake, ping.
    std::size_t command_bytes = 8192;
  };
  /// `has_greeted`: CurveHandshake has followed the greeting and the handshake.
  explicit ZmtpMeter(const Limits& limits, bool has_greeted = false)
      : limits_(limits), state_(has_greeted ? State::flags : State::greeting) {}

  /// The next bytes of the peer, in any pieces. Null: they are within the limits, and may be passed on; else why not,
  /// and nothing more of this peer may be.
  const char* add(std::span<const std::byte> bytes);
  /// Announced bytes of the message that has begun and not ended; 0 between messages.
  std::size_t pending_bytes() const { return message_bytes_; }
  /// Announced bytes of all frames of messages so far.
  std::uint64_t announced_bytes() const { return announced_bytes_; }
  /// Whole messages so far.
  std::uint64_t messages() const { return messages_; }
  /// Whether the greeting is over and the handshake's first command has come.
  bool has_shaken_hands() const { return commands_ > 0; }

 private:
  enum class State : std::uint8_t { greeting, flags, length, body };
  const char* begin_frame();
  void end_frame();

  const Limits limits_;
  State state_;
  std::size_t greeting_bytes_ = 0;
  std::uint8_t flags_ = 0;
  std::size_t length_left_ = 0;
  std::uint64_t length_ = 0;
  std::size_t message_bytes_ = 0, message_frames_ = 0;
  std::uint64_t messages_ = 0, commands_ = 0, announced_bytes_ = 0;
};

}  // namespace troupe::comm

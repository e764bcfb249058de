#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/namespaces.h"

namespace troupe::comm {

/// Follows the handshake of one CurveZMQ connection (ZeroMQ RFC 23, 26): greeting, HELLO, INITIATE of the client, READY
/// or ERROR of the server. It checks form only; the boxes and the key are libzmq's and the ZAP handler's. Not
/// thread-safe.
class CurveHandshake {
 public:
  enum class Stage : std::uint8_t {
    /// The client's greeting and HELLO are coming.
    hello,
    /// HELLO is whole.
    welcome,
    /// The first byte of INITIATE has come, not the last. It shows the client's key.
    initiate,
    /// INITIATE is whole; the server has not answered it.
    asked,
    /// The server has taken the key.
    ready,
    /// The server has refused the key.
    refused,
  };
  static constexpr std::size_t kMaxInitiate = 8192;

  /// The next bytes of the client, in any pieces. Null: they are a handshake so far, and may be passed on; else why
  /// not. A byte behind INITIATE is refused until the server has said READY.
  const char* add_client(std::span<const std::byte> bytes);
  /// The next bytes of the server.
  void add_server(std::span<const std::byte> bytes);
  Stage stage() const { return stage_; }

 private:
  /// One side's greeting and frames, byte by byte.
  struct Side {
    enum class Event : std::uint8_t { none, greeting, head, end };
    Event read(std::uint8_t next);
    std::size_t greeting_bytes = 0;
    std::uint8_t flags = 0;
    std::uint64_t length = 0;
    /// Of the length's bytes and of the body's.
    std::size_t head_left = 0;
    std::uint64_t body_left = 0;
    bool in_frame = false;
    /// The body's first bytes.
    std::string body;
  };
  const char* check_greeting(std::uint8_t next) const;
  const char* check_head() const;
  const char* end_command();

  Side client_, server_;
  Stage stage_ = Stage::hello;
};

}  // namespace troupe::comm

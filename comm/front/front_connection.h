#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "comm/front/curve_handshake.h"
#include "comm/front/zmtp_meter.h"

namespace troupe::comm {

/// Bytes on their way from one socket to another.
class BytePipe {
 public:
  bool is_empty() const { return end_ == begin_; }
  bool is_full() const { return end_ == kBytes; }
  /// Reads what fits behind what is there. The bytes read; 0: the end, -1: nothing now or an error (errno).
  ssize_t fill(int fd);
  /// What the last fill() read.
  std::span<const std::byte> fresh() const { return {bytes_.data() + end_ - fresh_, fresh_}; }
  /// Sends as much as fd takes. False: the other side is gone.
  bool drain(int fd);
  void clear() { begin_ = end_ = fresh_ = 0; }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  /// Of kBytes once something has come: a connection that says nothing costs nothing.
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0, end_ = 0, fresh_ = 0;
};

/// What the reader of libzmq's socket and the front tell each other about one connection.
struct ReaderAccount {
  /// Bytes of the whole messages that the reader has taken. Written by the reader.
  std::atomic<std::uint64_t> delivered{0};
  /// The front reads the peer no further until more is delivered. Written by the front.
  std::atomic<bool> is_held{false};
};

/// One peer of a ZmtpFront and its connection to libzmq. The front's thread.
class FrontConnection {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    /// Peers prove a key (CurveZMQ).
    bool has_keys = false;
    ZmtpMeter::Limits meter;
    /// With keys: see ZmtpFrontOptions.
    std::size_t unread_bytes = 0;
  };
  FrontConnection(std::uint64_t id, FileDescriptor client, std::string address, const Limits& limits);

  /// Reads from the client. Null: goes on (see `ended`); else why the peer is to be cut.
  const char* read_client();
  /// Reads from libzmq.
  void read_backend();
  /// Send what waits in `up` or `down`. A side that has closed loses what waits for it; the connection ends once what
  /// that side sent has been read to its end.
  void send_up();
  void send_down();
  /// Whether `up` may be passed on to libzmq. An INITIATE also needs its turn, which ZmtpFront gives.
  bool may_pass();
  /// Which sides epoll should report bytes of.
  bool wants_client() const { return !ended && !is_backend_deaf_ && (up.is_empty() || (!is_known && !up.is_full())); }
  bool wants_backend() const {
    return !ended && !backend_ended && !is_client_deaf_ && backend.is_open() && down.is_empty();
  }
  /// The whole INITIATE has come and has no answer; libzmq may not have it yet.
  bool has_asked() const { return limits_.has_keys && handshake.stage() == CurveHandshake::Stage::asked; }
  /// Announced bytes of messages that the reader of libzmq's socket has not taken.
  std::uint64_t unread_bytes() const;

  const std::uint64_t id;
  const std::string address;
  const Clock::time_point since = Clock::now();
  FileDescriptor client, backend;
  BytePipe up, down;
  CurveHandshake handshake;
  ZmtpMeter meter;
  const std::shared_ptr<ReaderAccount> account = std::make_shared<ReaderAccount>();
  std::uint64_t received_bytes = 0;
  /// The peer has proved its key; without keys: it has shaken hands.
  bool is_known = false;
  /// libzmq has its INITIATE and has not answered; one connection at a time.
  bool has_turn = false;
  /// libzmq has closed its end; what libzmq sent before is still to be passed on.
  bool backend_ended = false;
  bool ended = false;
  /// Without keys: the message that has begun did so then.
  Clock::time_point message_since{};
  bool in_message = false;
  /// Ticks for which the connection has been held, or for which its last answers have waited after libzmq's end.
  int num_held_ticks = 0;
  /// Which events epoll watches for.
  std::uint32_t client_events = 0, backend_events = 0;

 private:
  const Limits& limits_;
  std::uint64_t messages_then_ = 0;
  bool is_client_deaf_ = false, is_backend_deaf_ = false;
};

}  // namespace troupe::comm

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace troupe::comm {

/// How a ZmtpFront listens, and what it lets a peer send.
struct ZmtpFrontOptions {
  /// As TcpAddress::parse takes it.
  std::string host = "127.0.0.1";
  /// 0: any free one.
  std::uint16_t port = 0;
  /// Where libzmq listens: the answer of bind_backend().
  std::string backend;
  /// Peers have to prove a key (CurveZMQ).
  bool has_keys = false;
  /// Without keys: of all frames of one message together. With keys, which hide where a message ends: of one frame, as
  /// it is sent.
  std::size_t max_message_bytes = std::size_t{64} << 20;
  /// Without keys: of all unfinished messages of all peers together; the peer that goes over it is cut.
  std::size_t max_unfinished_bytes = std::size_t{512} << 20;
  /// With keys: of what one peer has sent and delivered() has not reported. The front reads a peer no further, and cuts
  /// it when nothing of it is delivered for unread_timeout. At least two messages of max_message_bytes and 64 KiB,
  /// because the end of one and the head of the next can come in one piece.
  std::size_t max_unread_bytes = std::size_t{24} << 20;
  /// Fewer where the process's limit of descriptors is low: each takes three.
  std::size_t max_connections = 64;
  /// Of strangers: peers that have not shaken hands, or with keys not proved theirs. Never more than an eighth of the
  /// limit of descriptors, or 8.
  std::size_t max_strangers = 256;
  /// From accept to the handshake's first command; with keys, to its end.
  std::chrono::milliseconds handshake_timeout{10'000};
  /// Without keys: from a message's first byte to its last.
  std::chrono::milliseconds message_timeout{60'000};
  std::chrono::milliseconds unread_timeout{5'000};
  /// The front adds the strangers that it cuts to this counter; not owned.
  std::atomic<std::uint64_t>* refused = nullptr;
};

/// Binds a libzmq socket where only this process can dial it, and returns the name of the place. Errors: unavailable.
Result<std::string> bind_backend(void* socket);

/// Stands between the network and a libzmq socket, because libzmq allocates whatever size a peer announces, and keeps
/// any number of frames of one message before its reader sees one. Passes the bytes of each connection on as they are,
/// counts them first (ZmtpMeter, CurveHandshake), and cuts a peer that goes over a limit or breaks the handshake's
/// form, before libzmq has seen the byte that does. libzmq hears of a peer once it has sent the signature of a
/// greeting. A connection over max_connections or max_strangers pushes out the oldest stranger, first of those that
/// have said nothing; without one it is refused. One thread.
class ZmtpFront {
 public:
  /// Binds and starts. Errors: invalid_argument (host), unavailable (address in use), resource_exhausted.
  static Result<std::unique_ptr<ZmtpFront>> start(const ZmtpFrontOptions& options);
  /// finish(), and waits for the end: a second at most. The libzmq socket has been closed before.
  virtual ~ZmtpFront() = default;
  virtual std::uint16_t port() const = 0;
  /// "tcp://host:port", host as a number.
  virtual std::string endpoint() const = 0;
  /// Stops accepting. The front ends when it has passed on what libzmq had left to send, a second later at most.
  virtual void finish() = 0;
  virtual bool has_ended() const = 0;

  /// With keys: the connection whose INITIATE, which shows its key, libzmq has and has not answered. The front passes
  /// on one INITIATE at a time, so a ZAP request is about this connection.
  struct Peer {
    std::uint64_t connection = 0;
    /// "10.0.0.1:51234".
    std::string address;
  };
  virtual std::optional<Peer> peer_in_question() const = 0;
  /// With keys: the reader of libzmq's socket has taken a message of this connection; `bytes` as its frames were sent.
  virtual void delivered(std::uint64_t connection, std::size_t bytes) = 0;
  /// With keys: the reader of libzmq's socket has read all that there was. unread_timeout runs only while the reader
  /// calls this, so a reader that is busy makes the front cut no peer.
  virtual void nothing_left() = 0;
  /// Cuts a connection; nothing happens when it has ended.
  virtual void cut(std::uint64_t connection) = 0;
};

/// Bytes of a frame of so many as CurveZMQ sends it (RFC 26: MESSAGE, nonce, box, flags).
constexpr std::size_t curve_frame_bytes(std::size_t bytes) { return bytes + 33; }

}  // namespace troupe::comm

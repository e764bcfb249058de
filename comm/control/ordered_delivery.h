#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/control/envelope.h"

namespace troupe::comm {

/// A control message between two processes: its envelope and payload.
struct Packet {
  Envelope envelope;
  std::vector<std::byte> payload = {};
};

/// Delivers control messages exactly once and in order over sockets that may lose, repeat or reorder them
/// (docs/wire.md#delivery). Every pair of names has a stream of its own in each direction: the sender numbers its
/// messages from 1, keeps each until the addressee says that it has it, and sends it again after 250 ms, 500 ms, 1 s
/// ... at most 5 s. The receiver passes messages on in the order of their numbers, drops those that it has had, and
/// says how many it has: with each message that goes the other way, or alone after 20 ms.
///
/// A name is one life of an actor or node ("decoder/0#1"): an actor that is started again has another one, so that
/// what was meant for the one before never reaches it. Pure: sends nothing, and time is what the caller says. Not
/// thread-safe.
class OrderedDelivery {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    /// Times a message is sent before its addressee counts as gone; 0: for ever.
    int tries = 0;
    /// Bytes of the messages to one addressee that wait for its word; one that is over it counts as gone.
    std::size_t bytes = std::size_t{64} << 20;
    /// Messages that are kept for one sender while one before them is missing; later ones are dropped and come again.
    std::size_t early = 1024;
  };
  /// Type of an envelope that only says how many messages its sender has had; its payload is an empty map.
  static constexpr std::uint16_t kAcknowledge = 0x7E;
  /// Longest time until a sender is told that its message came, and until a message is sent a second time.
  static constexpr std::chrono::milliseconds kTellAfter{20}, kFirstRetry{250};

  explicit OrderedDelivery(Limits limits) : limits_(limits) {}

  /// Gives a message its number and keeps it. Returns it as it is sent now; nothing: its addressee counts as gone.
  std::optional<Packet> send(Packet packet, Time now);
  /// Takes what a socket brought: returns the messages that it makes due for their addressee, oldest first. A message
  /// without a number is returned as it is.
  std::vector<Packet> receive(Packet packet, Time now);
  /// What is sent at `now`: messages again, and words to those that have heard nothing for 20 ms.
  std::vector<Packet> due(Time now);
  /// When due() has the next packet; nothing: no message waits.
  std::optional<Time> next_due() const;
  /// Drops everything from and to a name that has ended; what still comes from it is dropped, too. A farewell() does so
  /// at its addressee.
  void forget(const std::string& name);
  /// Whether messages of this type go without a number: their senders repeat them until they are answered, or soon
  /// have newer ones.
  static bool repeats_itself(std::uint16_t type) noexcept;
  /// The last word of `from` to `to`: the addressee forgets the name.
  static Packet farewell(const std::string& from, const std::string& to);
  static bool is_farewell(const Envelope& envelope);
  /// Messages that wait for their addressee's word; those to a name that counts as gone do not.
  std::size_t waiting() const;

 private:
  struct Kept {
    Packet packet;
    Time again;
    int tries = 1;
  };
  /// Both directions between a name of this process and one elsewhere.
  struct Stream {
    // Out.
    std::uint64_t sent = 0;
    std::deque<Kept> kept = {};
    std::size_t bytes = 0;
    bool is_gone = false;
    // In: all up to `had` was passed on.
    std::uint64_t had = 0;
    std::map<std::uint64_t, Packet> early = {};
    // When the other side is told how many of its messages came; nothing: it knows.
    std::optional<Time> tell_at = {};
  };
  using Names = std::pair<std::string, std::string>;  // here, there

  static void drop(Stream& stream);
  void heard_back(Stream& stream, std::uint64_t received);

  const Limits limits_;
  std::map<Names, Stream> streams_;
  // Names that have ended, the newest last.
  std::deque<std::string> ended_;
};

}  // namespace troupe::comm

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "comm/channel/channel.h"

namespace troupe::comm {

/// Items that a producer sent over a network and that the consumer has not confirmed: a connection that breaks takes
/// along what is under way in it. HELLOs are numbered, and the consumer answers them and confirms items in the order in
/// which they came: what is unconfirmed when a HELLO is answered that was sent after it is lost. Thread-safe.
class SentItems {
 public:
  using Clock = std::chrono::steady_clock;

  /// An item left.
  void sent(const Item& item, Clock::time_point now);
  /// The consumer has it, or does not want it any more. False: it is not waited for.
  bool confirmed(const Credit& credit);
  /// The slot was granted again, so the item before arrived; its confirmation was lost.
  void granted_again(std::uint32_t slot);
  /// The number of the next HELLO, from 1.
  std::uint64_t next_hello(Clock::time_point now);
  /// Whether an item and the last HELLO are both older than `age`: time to ask.
  bool is_doubtful(Clock::time_point now, std::chrono::milliseconds age) const;
  /// The items that were lost, now that HELLO `number` is answered. They count as sent anew.
  std::vector<Item> lost(std::uint64_t number, Clock::time_point now);

 private:
  struct Sent {
    Item item;
    /// HELLOs that had been sent before it.
    std::uint64_t hellos = 0;
    Clock::time_point at;
  };
  mutable std::mutex mutex_;
  /// By slot, which has one item at a time.
  std::map<std::uint32_t, Sent> sent_;
  std::uint64_t hellos_ = 0;
  Clock::time_point last_hello_{};
};

}  // namespace troupe::comm

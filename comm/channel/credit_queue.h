#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/channel/slot_table.h"

namespace troupe::comm {

/// The producer's half of a channel, whatever the transport: credits that arrived and were not used, whether the
/// consumer is there, and the counters. wait_for_welcome() and next() are called by one thread at a time, the rest by
/// any.
class CreditQueue final : public ProducerLink {
 public:
  /// Queues a credit; one that is sent again (serial not above the slot's last) is ignored. Its request is in memory
  /// that both ends share, and is not copied.
  void deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte> request) override;
  /// The same of a credit whose request came with it. False: it was sent again.
  bool arrive(const Credit& credit, std::uint64_t serial, std::vector<std::byte> request);
  /// The consumer is gone or refused this producer: every later call fails with `unavailable` and the reason.
  void close(const std::string& reason) override;
  /// The consumer took this producer in.
  void welcome();
  /// Wakes next() with `cancelled`, now and ever after.
  void stop();

  /// Waits for welcome(), calling `ask` at once and then every `interval`. Errors: deadline_exceeded,
  /// failed_precondition (refused), cancelled.
  Result<void> wait_for_welcome(const std::string& consumer, std::chrono::milliseconds deadline,
                                std::chrono::milliseconds interval, const std::function<void()>& ask);
  /// A credit, and what arrive() brought with it.
  struct Arrived {
    Credit credit;
    std::vector<std::byte> request;
  };
  /// As ChannelProducer::next_credit; calls `ask` (may be empty) every `interval` while there is none.
  Result<Arrived> next(std::chrono::milliseconds deadline, std::chrono::milliseconds interval,
                       const std::function<void()>& ask);
  /// Error `unavailable` if the consumer is gone.
  Result<void> check_open() const;
  /// Counts an item handed over and gives its credit back.
  void count_sent(const Item& item);
  ChannelStats stats() const;

 private:
  /// Deadlines and waiting times are of the monotonic clock.
  using Clock = std::chrono::steady_clock;
  /// With mutex_ held and closed_ set.
  Error closed_error() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// In the order of arrival, which is that of granting.
  std::deque<Arrived> credits_;
  /// Slots handed out by next() and not sent yet.
  std::set<std::uint32_t> held_;
  /// Per slot.
  std::map<std::uint32_t, std::uint64_t> last_serial_;
  /// Why the consumer is gone.
  std::optional<std::string> closed_;
  /// Both only ever become true.
  bool is_welcome_ = false;
  bool is_stopped_ = false;
  /// Without credits_outstanding, which stats() counts.
  ChannelStats stats_;
};

/// Checks an item against its slot and makes it what the consumer will see: a VOID item carries no bytes.
/// Errors: invalid_argument (more bytes than the slot holds).
Result<Item> checked_item(const Item& item, std::size_t slot_bytes);

}  // namespace troupe::comm

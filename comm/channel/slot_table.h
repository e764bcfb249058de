#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/arena.h"
#include "comm/channel/channel.h"

namespace troupe::comm {

/// How a consumer reaches one producer, whatever the transport. Called under no lock of the table; must not block.
class ProducerLink {
 public:
  virtual ~ProducerLink() = default;
  /// `serial` numbers the grants of a table from 1; a credit that is sent again keeps its serial. `request` is the
  /// start of the credit's slot, credit.request_bytes long, and valid during the call.
  virtual void deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte> request) = 0;
  /// The consumer is going away.
  virtual void close(const std::string& reason) = 0;
};

/// What a slot is doing. A slot is written by its producer only while `granted`, and read by the consumer while
/// `filled`.
/// `receiving` lasts for one copy and one hash of an arriving item. free and filled slots may be granted.
enum class SlotState : std::uint8_t { free, granted, receiving, filled };

/// The slots of one arena, who may fill which, which are free, and the producers that dialled in: the rules of
/// docs/channels.md. One table serves one or more consumer ends ("ends"), numbered by open_end(). Thread-safe; calls
/// nobody under its lock.
class SlotTable {
 public:
  /// The arena holds exactly num_slots * page_aligned(slot_bytes) bytes, else the process aborts.
  SlotTable(Arena arena, std::uint32_t num_slots, std::size_t slot_bytes);

  std::uint32_t num_slots() const noexcept { return num_slots_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  /// Arena::publish. Before producers dial in.
  Result<void> publish(const std::string& folder) { return arena_.publish(folder); }
  /// What other processes attach to (comm/channel/arena.h); empty: not published.
  const std::string& arena_handle() const noexcept { return arena_.handle(); }
  /// slot_bytes of the arena; valid while the table lives. Who may touch it says state().
  std::span<std::byte> slot(std::uint32_t index) const;

  /// Registers a consumer end and returns its number.
  std::size_t open_end();
  /// Forgets the end's producers and tells them. What was granted to them stays theirs until drop().
  void close_end(std::size_t end, const std::string& reason);

  /// A producer says hello. True: it is new; false: it was known on this end (its outstanding credits are delivered
  /// again). Errors: failed_precondition (name in use on another end, departed, or dropped).
  Result<bool> admit(std::size_t end, const std::string& producer, std::shared_ptr<ProducerLink> link);
  /// The producer said goodbye: no further grants. Its outstanding credits stay its own until drop().
  void leave(std::size_t end, const std::string& producer);
  /// As of ChannelConsumer; takes no lock.
  std::uint32_t free_slots() const noexcept { return num_free_.load(std::memory_order_relaxed); }
  /// As ChannelConsumer::grant, release and drop_producer.
  /// drop() waits up to 10 s for a copy under way into a slot of that producer, then logs and leaves that slot in
  /// use. A dropped name is spent, also one that never dialled in.
  Result<std::uint32_t> grant(const std::string& producer, const Credit& credit,
                              std::span<const std::byte> request = {});
  void release(std::uint32_t slot);
  void drop(const std::string& producer);

  /// Claims the slot for an arriving item. False: the item is late (counted), and the slot must not be touched.
  /// True: call end_receive(), soon and without waiting for anybody, since drop() waits for it.
  [[nodiscard]] bool begin_receive(std::size_t end, const std::string& producer, const Credit& credit);
  /// `item.credit.slot` is filled from here on, with the item's bytes, or VOID ones with none; counts it.
  void end_receive(std::size_t end, const Item& item);

  /// A snapshot: the state may have changed when it is read.
  SlotState state(std::uint32_t slot) const;
  ChannelStats stats(std::size_t end) const;

 private:
  using Clock = std::chrono::steady_clock;
  /// departed: said goodbye, its slots are still its own; dropped: its exit is confirmed, its name is spent.
  enum class Presence : std::uint8_t { here, departed, dropped };
  struct Slot {
    SlotState state = SlotState::free;
    /// Whom the credit was given to; empty unless granted or receiving.
    std::string producer;
    /// As granted last, with request_bytes.
    Credit credit;
    /// Of that grant; 0: never granted.
    std::uint64_t serial = 0;
  };
  /// A credit that a producer may not have got.
  struct Owed {
    Credit credit;
    std::uint64_t serial = 0;
    std::vector<std::byte> request;
  };
  /// Whom a credit can be given to, and where it dialled in. Kept for good, so that a name never comes back.
  struct Producer {
    Presence presence = Presence::here;
    std::size_t end = 0;
    /// Empty once departed or dropped.
    std::shared_ptr<ProducerLink> link;
  };
  /// Adds the time since the last change of a state if the consumer had no item then: credits out, nothing filled.
  /// set_state() calls it.
  void account_wait();
  /// With mutex_ held; keeps free_, num_granted_ and num_filled_ right.
  void set_state(std::uint32_t index, SlotState state);
  /// Slots granted or being received for producers of that end.
  std::uint64_t outstanding(std::size_t end) const;

  /// Bytes from the beginning of one slot to the next are stride_, whole pages.
  Arena arena_;
  const std::uint32_t num_slots_;
  const std::size_t slot_bytes_;
  const std::size_t stride_;

  /// Guards everything below it.
  mutable std::mutex mutex_;
  std::condition_variable received_;
  std::vector<Slot> slots_;
  /// The free ones; the last is granted next.
  std::vector<std::uint32_t> free_;
  /// Size of free_, read without mutex_.
  std::atomic<std::uint32_t> num_free_;
  std::map<std::string, Producer> producers_;
  /// By the number of the end, without wait_seconds and credits_outstanding.
  std::vector<ChannelStats> ends_;
  std::uint64_t last_serial_ = 0;
  std::size_t num_granted_ = 0;
  std::size_t num_filled_ = 0;
  double wait_seconds_ = 0;
  Clock::time_point accounted_ = Clock::now();
};

}  // namespace troupe::comm

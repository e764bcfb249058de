#pragma once

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

namespace troupe {

/// How a consumer reaches one producer, whatever the transport. Called under no lock of the table; must not block.
class ProducerLink {
 public:
  virtual ~ProducerLink() = default;
  /// `serial` numbers the grants of a table from 1; a credit that is sent again keeps its serial. `request` is the start of
  /// the credit's slot, credit.request_bytes long, and valid during the call.
  virtual void deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte> request) = 0;
  /// The consumer is going away.
  virtual void close(const std::string& reason) = 0;
};

/// What a slot is doing. A slot is written by its producer only while `granted`, and read by the consumer while
/// `filled`.
enum class SlotState : std::uint8_t { free, granted, receiving, filled };

/// The slots of one arena, who may fill which, and the producers that dialled in: the rules of docs/channels.md.
/// One table serves one or more consumer ends ("ends"), numbered by open_end(). Thread-safe; calls nobody under its
/// lock.
class SlotTable {
 public:
  SlotTable(Arena arena, std::uint32_t num_slots, std::size_t slot_bytes);

  std::uint32_t num_slots() const noexcept { return num_slots_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  const std::string& arena_handle() const noexcept { return arena_.handle(); }
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
  /// As ChannelConsumer::grant and drop_producer.
  Result<void> grant(const std::string& producer, const Credit& credit, std::span<const std::byte> request = {});
  void drop(const std::string& producer);

  /// Claims the slot for an arriving item. False: the item is late (counted), and the slot must not be touched.
  /// True: call end_receive(), soon and without waiting for anybody, since drop() waits for it.
  [[nodiscard]] bool begin_receive(std::size_t end, const std::string& producer, const Credit& credit);
  void end_receive(std::size_t end, const Item& item);

  SlotState state(std::uint32_t slot) const;
  ChannelStats stats(std::size_t end) const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Presence : std::uint8_t { here, departed, dropped };
  struct Slot {
    SlotState state = SlotState::free;
    std::string producer;  ///< whom the credit was given to; empty unless granted or receiving
    Credit credit;
    std::uint64_t serial = 0;
  };
  /// A credit that a producer may not have got.
  struct Owed {
    Credit credit;
    std::uint64_t serial = 0;
    std::vector<std::byte> request;
  };
  struct Producer {
    Presence presence = Presence::here;
    std::size_t end = 0;
    std::shared_ptr<ProducerLink> link;
  };
  /// A consumer without an item: credits are out and nothing is filled. Call around every change of a state.
  void account_wait();
  void set_state(Slot& slot, SlotState state);
  std::uint64_t outstanding(std::size_t end) const;

  const Arena arena_;
  const std::uint32_t num_slots_;
  const std::size_t slot_bytes_;
  const std::size_t stride_;

  mutable std::mutex mutex_;
  std::condition_variable received_;
  std::vector<Slot> slots_;
  std::map<std::string, Producer> producers_;
  std::vector<ChannelStats> ends_;
  std::uint64_t last_serial_ = 0;
  std::size_t num_granted_ = 0;
  std::size_t num_filled_ = 0;
  double wait_seconds_ = 0;
  Clock::time_point accounted_ = Clock::now();
};

}  // namespace troupe

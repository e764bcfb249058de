#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/channel/slot_table.h"

namespace troupe::comm {

/// Lets a closing owner wait until nobody is inside. Thread-safe.
class Gate {
 public:
  /// Held while inside; false when the gate was closed.
  class Visit {
   public:
    /// Waits for nobody: a closed gate turns the visitor away at once.
    explicit Visit(Gate& gate) : gate_(gate), is_inside_(gate.enter()) {}
    ~Visit() {
      if (is_inside_) gate_.leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const noexcept { return is_inside_; }

   private:
    Gate& gate_;
    const bool is_inside_;
  };
  /// Refuses further visits and waits for those under way. Never call it from inside a visit.
  /// Aborts the process when a visit lasts over 10 s: a callback that blocks would hang the destruction for ever.
  void close();

 private:
  bool enter();
  void leave();
  std::mutex mutex_;
  std::condition_variable left_;
  /// Guarded by mutex_, as is_closed_.
  int inside_ = 0;
  bool is_closed_ = false;
};

/// A consumer end without its transport: what happens when a producer says hello, hands an item over, or leaves.
/// Transports keep it by shared_ptr, so that a message which arrives after the consumer's destruction finds a closed
/// gate. Thread-safe; calls back under no lock.
class ConsumerCore {
 public:
  /// Opens an end of the table. Tables are shared by the ends of one arena.
  ConsumerCore(std::shared_ptr<SlotTable> table, ChannelConsumer::Callbacks callbacks);

  /// The three accessors are for transports; safe from any thread.
  SlotTable& table() noexcept { return *table_; }
  const std::shared_ptr<SlotTable>& shared_table() const noexcept { return table_; }
  Gate& gate() noexcept { return gate_; }

  /// As SlotTable::admit. Errors: also `unavailable` (closed).
  Result<bool> admit(const std::string& producer, std::shared_ptr<ProducerLink> link);
  /// Calls on_producer; after admit() returned true.
  void announce(const std::string& producer, std::uint32_t capacity);
  /// Takes an item in: checks it against its grant, copies `data` (none: the bytes are in the slot already), compares
  /// the digest and calls on_item. False: this end is closed.
  bool receive(const std::string& producer, const Item& item, std::optional<std::span<const std::byte>> data);
  /// Calls on_progress, unless this end is closed.
  void progress(const std::string& producer, const Credit& credit);
  /// The producer said goodbye: as SlotTable::leave.
  void leave(const std::string& producer);
  /// Waits for callbacks under way, then tells the producers. Idempotent.
  void close(const std::string& reason);
  /// Of this end of the table.
  ChannelStats stats() const { return table_->stats(end_); }

 private:
  /// The item as on_item gets it: one whose size or digest is wrong becomes VOID with the reason "damaged in transit:
  /// ...".
  Item checked(const Item& item, std::optional<std::span<const std::byte>> data);

  const std::shared_ptr<SlotTable> table_;
  const std::size_t end_;
  const ChannelConsumer::Callbacks callbacks_;
  Gate gate_;
};

}  // namespace troupe::comm

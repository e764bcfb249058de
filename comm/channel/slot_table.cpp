#include "comm/channel/slot_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/stopwatch.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

/// Receiving is a copy and a hash of one slot; longer than this, something is wrong with the machine.
constexpr auto kReceiveDeadline = 10s;

bool same_credit(const Credit& a, const Credit& b) { return a.slot == b.slot && a.tag == b.tag && a.fence == b.fence; }

}  // namespace

SlotTable::SlotTable(Arena arena, std::uint32_t num_slots, std::size_t slot_bytes)
    : arena_(std::move(arena)),
      num_slots_(num_slots),
      slot_bytes_(slot_bytes),
      stride_(page_aligned(slot_bytes)),
      slots_(num_slots),
      num_free_(num_slots) {
  TROUPE_CHECK(arena_.bytes().size() == stride_ * num_slots, "an arena holds exactly its table's slots");
  for (std::uint32_t index = num_slots; index-- > 0;) free_.push_back(index);
}

std::span<std::byte> SlotTable::slot(std::uint32_t index) const {
  TROUPE_CHECK(index < num_slots_, "a slot index comes from a credit, which was checked");
  return arena_.bytes().subspan(index * stride_, slot_bytes_);
}

std::size_t SlotTable::open_end() {
  const std::lock_guard lock(mutex_);
  ends_.emplace_back();
  return ends_.size() - 1;
}

void SlotTable::close_end(std::size_t end, const std::string& reason) {
  std::vector<std::shared_ptr<ProducerLink>> links;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, producer] : producers_) {
      if (producer.end != end || producer.presence != Presence::here) continue;
      producer.presence = Presence::departed;
      links.push_back(std::move(producer.link));
    }
  }
  for (const auto& link : links) link->close(reason);
}

Result<bool> SlotTable::admit(std::size_t end, const std::string& producer, std::shared_ptr<ProducerLink> link) {
  std::vector<Owed> owed;
  {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = producers_.try_emplace(producer, Producer{Presence::here, end, link});
    if (is_new) return true;
    if (place->second.presence != Presence::here) {
      return Error{Errc::failed_precondition,
                   fmt::format("producer {} has {}; a restarted one needs a new name", producer,
                               place->second.presence == Presence::dropped ? "been dropped" : "left")};
    }
    if (place->second.end != end) {
      return Error{Errc::failed_precondition,
                   fmt::format("a producer named {} has dialled another end of this consumer", producer)};
    }
    for (const auto& slot : slots_) {
      if (slot.state != SlotState::granted || slot.producer != producer) continue;
      // Copied under the lock: once the slot is dropped and granted again, its bytes are another's.
      const auto request = this->slot(slot.credit.slot).first(slot.credit.request_bytes);
      owed.push_back({slot.credit, slot.serial, {request.begin(), request.end()}});
    }
    link = place->second.link;
  }
  // In the order granted, so that a credit lost with a connection comes before the ones after it.
  std::sort(owed.begin(), owed.end(), [](const Owed& a, const Owed& b) { return a.serial < b.serial; });
  for (const auto& [credit, serial, request] : owed) link->deliver(credit, serial, request);
  return false;
}

void SlotTable::leave(std::size_t end, const std::string& producer) {
  const std::lock_guard lock(mutex_);
  const auto found = producers_.find(producer);
  if (found == producers_.end() || found->second.end != end || found->second.presence != Presence::here) return;
  found->second.presence = Presence::departed;
  found->second.link.reset();
}

Result<std::uint32_t> SlotTable::grant(const std::string& producer, const Credit& asked,
                                       std::span<const std::byte> request) {
  Credit credit = asked;
  credit.request_bytes = static_cast<std::uint32_t>(request.size());
  std::shared_ptr<ProducerLink> link;
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = producers_.find(producer);
    if (found == producers_.end()) {
      return Error{Errc::not_found, fmt::format("no producer {} has dialled in; it gets no credit", producer)};
    }
    if (found->second.presence != Presence::here) {
      return Error{Errc::not_found, fmt::format("producer {} is gone; it gets no credit", producer)};
    }
    if (credit.slot == kAnySlot) {
      if (free_.empty()) return Error{Errc::resource_exhausted, fmt::format("all {} slots are in use", num_slots_)};
      credit.slot = free_.back();
    }
    if (credit.slot >= num_slots_) {
      return Error{Errc::invalid_argument, fmt::format("slot {} of {} does not exist", credit.slot, num_slots_)};
    }
    if (request.size() > std::min<std::size_t>(slot_bytes_, std::numeric_limits<std::uint32_t>::max())) {
      return Error{Errc::invalid_argument,
                   fmt::format("a request of {} bytes; a slot holds {}", request.size(), slot_bytes_)};
    }
    auto& slot = slots_[credit.slot];
    if (slot.state == SlotState::granted || slot.state == SlotState::receiving) {
      return Error{Errc::invalid_argument, fmt::format("slot {} is in use: granted to {}", credit.slot, slot.producer)};
    }
    set_state(credit.slot, SlotState::granted);
    slot.producer = producer;
    slot.credit = credit;
    slot.serial = serial = ++last_serial_;
    std::copy(request.begin(), request.end(), this->slot(credit.slot).begin());
    link = found->second.link;
  }
  link->deliver(credit, serial, request);
  return credit.slot;
}

void SlotTable::release(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  TROUPE_CHECK(slot < num_slots_ && slots_[slot].state == SlotState::filled, "who got a slot's item releases it, once");
  set_state(slot, SlotState::free);
}

void SlotTable::drop(const std::string& producer) {
  std::unique_lock lock(mutex_);
  auto& entry = producers_[producer];  // also for one that never came: its name is spent
  entry.presence = Presence::dropped;
  const auto link = std::move(entry.link);
  for (std::uint32_t index = 0; index < num_slots_; ++index) {
    const Slot& slot = slots_[index];
    if (slot.state == SlotState::granted && slot.producer == producer) set_state(index, SlotState::free);
  }
  // An item of this producer may be under way into its slot on another thread: that copy must end before the slot is
  // reused.
  const auto is_quiet = [&] {
    return std::none_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.state == SlotState::receiving && slot.producer == producer;
    });
  };
  if (!received_.wait_for(lock, kReceiveDeadline, is_quiet)) {
    log::error("channel: an item of {} has been under way into its slot for {} s; the slot stays in use", producer,
               std::chrono::duration_cast<std::chrono::seconds>(kReceiveDeadline).count());
  }
}

bool SlotTable::begin_receive(std::size_t end, const std::string& producer, const Credit& credit) {
  const std::lock_guard lock(mutex_);
  const auto found = producers_.find(producer);
  const bool is_ours =
      found != producers_.end() && found->second.end == end && found->second.presence != Presence::dropped;
  if (is_ours && credit.slot < num_slots_) {
    const Slot& slot = slots_[credit.slot];
    if (slot.state == SlotState::granted && slot.producer == producer && same_credit(slot.credit, credit)) {
      set_state(credit.slot, SlotState::receiving);
      return true;
    }
  }
  ++ends_[end].late_items;
  return false;
}

void SlotTable::end_receive(std::size_t end, const Item& item) {
  {
    const std::lock_guard lock(mutex_);
    TROUPE_CHECK(slots_[item.credit.slot].state == SlotState::receiving, "begin_receive claimed this slot");
    set_state(item.credit.slot, SlotState::filled);
    ++ends_[end].items;
    ends_[end].bytes += item.bytes;
  }
  received_.notify_all();
}

SlotState SlotTable::state(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  TROUPE_CHECK(slot < num_slots_, "slot index out of range");
  return slots_[slot].state;
}

ChannelStats SlotTable::stats(std::size_t end) const {
  const std::lock_guard lock(mutex_);
  ChannelStats stats = ends_[end];
  stats.wait_seconds = wait_seconds_;
  if (num_granted_ > 0 && num_filled_ == 0) {
    stats.wait_seconds += seconds_since(accounted_);
  }
  stats.credits_outstanding = outstanding(end);
  return stats;
}

void SlotTable::account_wait() {
  const auto now = Clock::now();
  if (num_granted_ > 0 && num_filled_ == 0) wait_seconds_ += Seconds(now - accounted_).count();
  accounted_ = now;
}

void SlotTable::set_state(std::uint32_t index, SlotState state) {
  account_wait();
  Slot& slot = slots_[index];
  // A slot that is being received still counts as out: its item is not there yet.
  const auto is_out = [](SlotState s) { return s == SlotState::granted || s == SlotState::receiving; };
  num_granted_ -= is_out(slot.state) ? 1 : 0;
  num_filled_ -= slot.state == SlotState::filled ? 1 : 0;
  // grant() takes the last one, so that the search ends where it begins.
  if (slot.state == SlotState::free) free_.erase(std::find(free_.rbegin(), free_.rend(), index).base() - 1);
  if (state == SlotState::free) free_.push_back(index);
  num_free_.store(static_cast<std::uint32_t>(free_.size()), std::memory_order_relaxed);
  slot.state = state;
  num_granted_ += is_out(slot.state) ? 1 : 0;
  num_filled_ += slot.state == SlotState::filled ? 1 : 0;
  if (!is_out(state)) slot.producer.clear();
}

std::uint64_t SlotTable::outstanding(std::size_t end) const {
  std::uint64_t count = 0;
  for (const auto& slot : slots_) {
    if (slot.state != SlotState::granted && slot.state != SlotState::receiving) continue;
    const auto found = producers_.find(slot.producer);
    if (found != producers_.end() && found->second.end == end) ++count;
  }
  return count;
}

}  // namespace troupe::comm

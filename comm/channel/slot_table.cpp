#include "comm/channel/slot_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

/// Receiving is a copy and a hash of one slot; longer than this, something is wrong with the machine.
constexpr auto kReceiveDeadline = 10s;

bool same_credit(const Credit& a, const Credit& b) {
  return a.slot == b.slot && a.tag == b.tag && a.position == b.position && a.fence == b.fence;
}

}  // namespace

SlotTable::SlotTable(Arena arena, std::uint32_t num_slots, std::size_t slot_bytes)
    : arena_(std::move(arena)),
      num_slots_(num_slots),
      slot_bytes_(slot_bytes),
      stride_(page_aligned(slot_bytes)),
      slots_(num_slots) {
  TROUPE_CHECK(arena_.bytes().size() == stride_ * num_slots, "an arena holds exactly its table's slots");
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

Result<void> SlotTable::grant(const std::string& producer, const Credit& asked, std::span<const std::byte> request) {
  Credit credit = asked;
  credit.request_bytes = static_cast<std::uint32_t>(request.size());
  std::shared_ptr<ProducerLink> link;
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = producers_.find(producer);
    if (found == producers_.end()) {
      return Error{Errc::not_found,
                   fmt::format("no producer {} has dialled in; cannot grant slot {}", producer, credit.slot)};
    }
    if (found->second.presence != Presence::here) {
      return Error{Errc::not_found, fmt::format("producer {} is gone; cannot grant slot {}", producer, credit.slot)};
    }
    if (credit.slot >= num_slots_) {
      return Error{Errc::invalid_argument, fmt::format("slot {} of {} does not exist", credit.slot, num_slots_)};
    }
    if (request.size() > std::min<std::size_t>(slot_bytes_, std::numeric_limits<std::uint32_t>::max())) {
      return Error{Errc::invalid_argument, fmt::format("a request of {} bytes for position {}; a slot holds {}",
                                                       request.size(), credit.position, slot_bytes_)};
    }
    auto& slot = slots_[credit.slot];
    if (slot.state == SlotState::granted || slot.state == SlotState::receiving) {
      return Error{Errc::invalid_argument, fmt::format("slot {} is in use: granted to {} for position {}", credit.slot,
                                                       slot.producer, slot.credit.position)};
    }
    account_wait();
    set_state(slot, SlotState::granted);
    slot.producer = producer;
    slot.credit = credit;
    slot.serial = serial = ++last_serial_;
    std::copy(request.begin(), request.end(), this->slot(credit.slot).begin());
    link = found->second.link;
  }
  link->deliver(credit, serial, request);
  return {};
}

void SlotTable::drop(const std::string& producer) {
  std::unique_lock lock(mutex_);
  auto& entry = producers_[producer];  // also for one that never came: its name is spent
  entry.presence = Presence::dropped;
  const auto link = std::move(entry.link);
  account_wait();
  for (auto& slot : slots_) {
    if (slot.state == SlotState::granted && slot.producer == producer) set_state(slot, SlotState::free);
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
    auto& slot = slots_[credit.slot];
    if (slot.state == SlotState::granted && slot.producer == producer && same_credit(slot.credit, credit)) {
      account_wait();
      set_state(slot, SlotState::receiving);
      return true;
    }
  }
  ++ends_[end].late_items;
  return false;
}

void SlotTable::end_receive(std::size_t end, const Item& item) {
  {
    const std::lock_guard lock(mutex_);
    auto& slot = slots_[item.credit.slot];
    TROUPE_CHECK(slot.state == SlotState::receiving, "begin_receive claimed this slot");
    account_wait();
    set_state(slot, SlotState::filled);
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
    stats.wait_seconds += std::chrono::duration<double>(Clock::now() - accounted_).count();
  }
  stats.credits_outstanding = outstanding(end);
  return stats;
}

void SlotTable::account_wait() {
  const auto now = Clock::now();
  if (num_granted_ > 0 && num_filled_ == 0) wait_seconds_ += std::chrono::duration<double>(now - accounted_).count();
  accounted_ = now;
}

void SlotTable::set_state(Slot& slot, SlotState state) {
  // A slot that is being received still counts as out: its item is not there yet.
  const auto is_out = [](SlotState s) { return s == SlotState::granted || s == SlotState::receiving; };
  num_granted_ -= is_out(slot.state) ? 1 : 0;
  num_filled_ -= slot.state == SlotState::filled ? 1 : 0;
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

#include "comm/channel/consumer_core.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace troupe::comm {

using namespace std::chrono_literals;

bool Gate::enter() {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  ++inside_;
  return true;
}

void Gate::leave() {
  // Notified under the lock: the closer may destroy the gate as soon as it sees nobody inside.
  const std::lock_guard lock(mutex_);
  --inside_;
  left_.notify_all();
}

void Gate::close() {
  std::unique_lock lock(mutex_);
  is_closed_ = true;
  const bool is_empty = left_.wait_for(lock, 10s, [&] { return inside_ == 0; });
  TROUPE_CHECK(is_empty, "a channel callback must not block, and must not destroy its own consumer");
}

ConsumerCore::ConsumerCore(std::shared_ptr<SlotTable> table, ChannelConsumer::Callbacks callbacks)
    : table_(std::move(table)), end_(table_->open_end()), callbacks_(std::move(callbacks)) {}

Result<bool> ConsumerCore::admit(const std::string& producer, std::shared_ptr<ProducerLink> link) {
  const Gate::Visit visit(gate_);
  if (!visit) return Error{Errc::unavailable, "the consumer is closing"};
  return table_->admit(end_, producer, std::move(link));
}

void ConsumerCore::announce(const std::string& producer, std::uint32_t capacity) {
  const Gate::Visit visit(gate_);
  if (visit && callbacks_.on_producer) callbacks_.on_producer(producer, capacity);
}

bool ConsumerCore::receive(const std::string& producer, const Item& item,
                           std::optional<std::span<const std::byte>> data) {
  const Gate::Visit visit(gate_);
  if (!visit) return false;
  if (!table_->begin_receive(end_, producer, item.credit)) return true;
  const Item received = checked(item, data);
  table_->end_receive(end_, received);
  if (callbacks_.on_item) callbacks_.on_item(producer, received);
  return true;
}

Item ConsumerCore::checked(const Item& item, std::optional<std::span<const std::byte>> data) {
  Item result = item;
  if (item.error.empty()) {
    const auto slot = table_->slot(item.credit.slot);
    const bool fits = item.bytes <= slot.size() && (!data || data->size() == item.bytes);
    if (fits && data && !data->empty()) std::memcpy(slot.data(), data->data(), data->size());
    if (!fits) {
      result.error = fmt::format("damaged in transit: {} bytes announced, {} came, a slot holds {}", item.bytes,
                                 data ? data->size() : slot.size(), slot.size());
    } else if (const auto digest = xxh3_64(std::span<const std::byte>(slot.first(item.bytes))); digest != item.xxh3) {
      result.error =
          fmt::format("damaged in transit: the bytes hash to {}, announced {}", to_hex(digest), to_hex(item.xxh3));
    }
  }
  if (!result.error.empty()) result.bytes = result.xxh3 = 0;
  return result;
}

void ConsumerCore::progress(const std::string& producer, const Credit& credit) {
  const Gate::Visit visit(gate_);
  if (visit && callbacks_.on_progress) callbacks_.on_progress(producer, credit);
}

void ConsumerCore::leave(const std::string& producer) { table_->leave(end_, producer); }

void ConsumerCore::close(const std::string& reason) {
  gate_.close();
  table_->close_end(end_, reason);
}

}  // namespace troupe::comm

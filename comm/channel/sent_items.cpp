#include "comm/channel/sent_items.h"

#include <algorithm>

namespace troupe::comm {

void SentItems::sent(const Item& item, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  sent_[item.credit.slot] = Sent{.item = item, .hellos = hellos_, .at = now};
}

bool SentItems::confirmed(const Credit& credit) {
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find(credit.slot);
  if (found == sent_.end()) return false;
  const Credit& own = found->second.item.credit;
  if (own.tag != credit.tag || own.fence != credit.fence) return false;
  sent_.erase(found);
  return true;
}

void SentItems::granted_again(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  sent_.erase(slot);
}

std::uint64_t SentItems::next_hello(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  last_hello_ = now;
  return ++hellos_;
}

bool SentItems::is_doubtful(Clock::time_point now, std::chrono::milliseconds age) const {
  const std::lock_guard lock(mutex_);
  if (now - last_hello_ < age) return false;
  return std::any_of(sent_.begin(), sent_.end(), [&](const auto& entry) { return now - entry.second.at >= age; });
}

std::vector<Item> SentItems::lost(std::uint64_t number, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<Item> items;
  for (auto& [slot, entry] : sent_) {
    if (entry.hellos >= number) continue;
    items.push_back(entry.item);
    entry.hellos = hellos_;
    entry.at = now;
  }
  return items;
}

}  // namespace troupe::comm

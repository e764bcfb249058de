#include "comm/control/client_keys.h"

#include <fmt/format.h>

namespace troupe::comm {

std::string ClientKeys::objection(const std::string& key, const std::string& address) const {
  const std::lock_guard lock(mutex_);
  const auto entry = keys_.find(key);
  if (entry == keys_.end()) return fmt::format("key {} is not listed", key);
  const auto& range = entry->second;
  if (!range || range->contains(address)) return {};
  return fmt::format("key {} is listed for addresses in {} alone", key, range->to_string());
}

}  // namespace troupe::comm

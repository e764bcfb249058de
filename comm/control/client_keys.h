#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/control/address_range.h"

namespace troupe::comm {

/// Public keys (Z85) of the clients that a CURVE server takes, as of now: a key that is removed, or bound to addresses
/// that its peer does not have, is deaf from then on, its open connections too. Thread-safe.
class ClientKeys {
 public:
  /// By key, where its peers have to be; nothing: anywhere.
  using Ranges = std::map<std::string, std::optional<AddressRange>>;
  explicit ClientKeys(Ranges keys = {}) : keys_(std::move(keys)) {}

  /// Why a peer at this address (as AddressRange::contains takes it) may not use the key, for the log; empty: it may.
  std::string objection(const std::string& key, const std::string& address) const;
  void replace(Ranges keys) {
    const std::lock_guard lock(mutex_);
    keys_ = std::move(keys);
  }

 private:
  mutable std::mutex mutex_;
  Ranges keys_;
};

}  // namespace troupe::comm

#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/namespaces.h"

namespace troupe::comm {

/// Public keys (Z85) of the clients that a CURVE server takes, as of now: a key that is removed is deaf from then on,
/// its open connections too. Thread-safe.
class ClientKeys {
 public:
  explicit ClientKeys(std::set<std::string> keys = {}) : keys_(std::move(keys)) {}

  bool contains(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key);
  }
  void replace(std::set<std::string> keys) {
    const std::lock_guard lock(mutex_);
    keys_ = std::move(keys);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> keys_;
};

}  // namespace troupe::comm

#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace troupe::workers {

/// The starts of actors ("decoder/0#1") that a node hosts now: from Spawn until their end was told. Thread-safe.
class HostedActors {
 public:
  void add(const std::string& instance) {
    const std::lock_guard lock(mutex_);
    instances_.insert(instance);
  }
  void remove(const std::string& instance) {
    const std::lock_guard lock(mutex_);
    instances_.erase(instance);
  }
  bool contains(const std::string& instance) const {
    const std::lock_guard lock(mutex_);
    return instances_.contains(instance);
  }
  std::vector<std::string> list() const {
    const std::lock_guard lock(mutex_);
    return {instances_.begin(), instances_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> instances_;
};

}  // namespace troupe::workers

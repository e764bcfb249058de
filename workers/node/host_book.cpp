#include "workers/node/host_book.h"

namespace troupe::workers {

void HostBook::expect(const std::string& instance) {
  const std::lock_guard lock(mutex_);
  expected_.insert(instance);
}

void HostBook::started(const std::string& instance, pid_t pid) {
  const std::lock_guard lock(mutex_);
  // not expected any more: its end was noticed before its start was told
  if (expected_.erase(instance) != 0) hosts_[pid] = {instance, std::nullopt};
}

void HostBook::ended(const std::string& instance, TimePoint now) {
  const std::lock_guard lock(mutex_);
  expected_.erase(instance);
  for (auto& [pid, host] : hosts_) {
    if (host.instance == instance && !host.ended) host.ended = now;
  }
  std::erase_if(hosts_, [&](const auto& entry) { return is_forgotten(entry.second, now); });
}

std::optional<std::string> HostBook::instance_of(pid_t pid, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  const auto host = hosts_.find(pid);
  if (host == hosts_.end() || is_forgotten(host->second, now)) return std::nullopt;
  return host->second.instance;
}

bool HostBook::is_expected(const std::string& instance) const {
  const std::lock_guard lock(mutex_);
  return expected_.contains(instance);
}

}  // namespace troupe::workers

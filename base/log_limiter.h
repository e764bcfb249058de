#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace troupe::base {

/// Lets one log line per subject and minute pass, so that a peer cannot fill the disk. Not thread-safe.
class LogLimiter {
 public:
  bool allows(const std::string& subject) {
    const auto now = std::chrono::steady_clock::now();
    if (last_.size() >= kMaxSubjects) last_.clear();  // subjects are chosen by peers: bounded
    const auto [it, is_new] = last_.try_emplace(subject, now);
    if (!is_new && now - it->second < std::chrono::minutes(1)) return false;
    it->second = now;
    return true;
  }

 private:
  static constexpr std::size_t kMaxSubjects = 1024;
  std::map<std::string, std::chrono::steady_clock::time_point> last_;
};

}  // namespace troupe::base

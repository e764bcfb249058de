#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace troupe::comm {

/// Tasks by due time; equal times run in the order of their ids. Time is what the caller says it is. Not thread-safe.
class TimerQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// An id is used once.
  void add(std::uint64_t id, Time due, std::function<void()> task) {
    due_of_[id] = due;
    tasks_[{due, id}] = std::move(task);
  }

  /// Forgets the timer; nothing happens if it has run or was cancelled before.
  void cancel(std::uint64_t id) {
    const auto it = due_of_.find(id);
    if (it == due_of_.end()) return;
    tasks_.erase({it->second, id});
    due_of_.erase(it);
  }

  /// Of the first task; nothing when there is none.
  std::optional<Time> next_due() const {
    if (tasks_.empty()) return std::nullopt;
    return tasks_.begin()->first.first;
  }

  /// Takes the first task that is due at `now`; empty if none is.
  std::function<void()> take_due(Time now) {
    if (tasks_.empty() || tasks_.begin()->first.first > now) return {};
    auto node = tasks_.extract(tasks_.begin());
    due_of_.erase(node.key().second);
    return std::move(node.mapped());
  }

  std::size_t size() const noexcept { return tasks_.size(); }

 private:
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> tasks_;
  std::unordered_map<std::uint64_t, Time> due_of_;
};

}  // namespace troupe::comm

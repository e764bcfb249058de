#include "comm/channel/credit_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"

namespace troupe::comm {

void CreditQueue::deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte>) {
  arrive(credit, serial, {});
}

bool CreditQueue::arrive(const Credit& credit, std::uint64_t serial, std::vector<std::byte> request) {
  {
    const std::lock_guard lock(mutex_);
    auto& last = last_serial_[credit.slot];
    if (serial <= last) return false;
    last = serial;
    credits_.push_back({credit, std::move(request)});
  }
  changed_.notify_all();
  return true;
}

void CreditQueue::close(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = reason;
  }
  changed_.notify_all();
}

void CreditQueue::welcome() {
  {
    const std::lock_guard lock(mutex_);
    is_welcome_ = true;
  }
  changed_.notify_all();
}

void CreditQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
}

Result<void> CreditQueue::wait_for_welcome(const std::string& consumer, std::chrono::milliseconds deadline,
                                           std::chrono::milliseconds interval, const std::function<void()>& ask) {
  const auto until = Clock::now() + deadline;
  std::unique_lock lock(mutex_);
  while (!is_welcome_) {
    if (is_stopped_) return Error{Errc::cancelled, fmt::format("dialling {} was stopped", consumer)};
    if (closed_)
      return Error{Errc::failed_precondition, fmt::format("{} refused this producer: {}", consumer, *closed_)};
    const auto now = Clock::now();
    if (now >= until) {
      return Error{Errc::deadline_exceeded, fmt::format("{} did not answer within {} ms", consumer, deadline.count())};
    }
    lock.unlock();
    ask();
    lock.lock();
    changed_.wait_until(lock, std::min(until, now + interval), [&] { return is_welcome_ || is_stopped_ || closed_; });
  }
  return {};
}

Result<CreditQueue::Arrived> CreditQueue::next(std::chrono::milliseconds deadline, std::chrono::milliseconds interval,
                                               const std::function<void()>& ask) {
  const auto begin = Clock::now();
  const auto until = begin + deadline;
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] { return is_stopped_ || closed_ || !credits_.empty(); };
  while (!is_ready()) {
    const auto now = Clock::now();
    if (now >= until) break;
    const auto wake = ask ? std::min(until, now + interval) : until;
    if (changed_.wait_until(lock, wake, is_ready) || Clock::now() >= until || !ask) continue;
    lock.unlock();
    ask();
    lock.lock();
  }
  stats_.wait_seconds += seconds_since(begin);
  if (is_stopped_) return Error{Errc::cancelled, "this producer was stopped"};
  if (closed_) return closed_error();
  if (credits_.empty()) return Error{Errc::deadline_exceeded, fmt::format("no credit within {} ms", deadline.count())};
  Arrived arrived = std::move(credits_.front());
  credits_.pop_front();
  held_.insert(arrived.credit.slot);
  return arrived;
}

Result<void> CreditQueue::check_open() const {
  const std::lock_guard lock(mutex_);
  if (closed_) return closed_error();
  return {};
}

void CreditQueue::count_sent(const Item& item) {
  const std::lock_guard lock(mutex_);
  held_.erase(item.credit.slot);
  ++stats_.items;
  stats_.bytes += item.bytes;
}

ChannelStats CreditQueue::stats() const {
  const std::lock_guard lock(mutex_);
  ChannelStats stats = stats_;
  stats.credits_outstanding = credits_.size() + held_.size();
  return stats;
}

Error CreditQueue::closed_error() const {
  return {Errc::unavailable, fmt::format("the consumer is gone: {}", *closed_)};
}

Result<Item> checked_item(const Item& item, std::size_t slot_bytes) {
  if (item.bytes > slot_bytes) {
    return Error{Errc::invalid_argument, fmt::format("an item of {} bytes for slot {}; a slot holds {}", item.bytes,
                                                     item.credit.slot, slot_bytes)};
  }
  Item checked = item;
  if (!checked.error.empty()) {
    checked.bytes = 0;
    checked.xxh3 = 0;
  }
  return checked;
}

}  // namespace troupe::comm

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "workers/stream/feed.h"

namespace troupe::workers {

inline std::int64_t position_of(const Credit& credit) { return SampleKey::of(credit.tag).position; }

/// A consumer of slots of 8 bytes whose producers are played by the test: it records grants and lets the test deliver
/// items, which hold their position. Not thread-safe, but for slot().
class FakeConsumer final : public ChannelConsumer {
 public:
  explicit FakeConsumer(std::uint32_t slots) : memory_(slots) {
    while (slots-- > 0) free_.push_back(slots);
  }
  Transport transport() const noexcept override { return Transport::inproc; }
  std::string address() const override { return "fake"; }
  std::uint32_t num_slots() const noexcept override { return static_cast<std::uint32_t>(memory_.size()); }
  std::size_t slot_bytes() const noexcept override { return 8; }
  std::uint32_t free_slots() const noexcept override { return static_cast<std::uint32_t>(free_.size()); }
  std::span<const std::byte> slot(std::uint32_t index) const override {
    return std::as_bytes(std::span<const std::int64_t>(&memory_[index], 1));
  }
  Result<std::uint32_t> grant(const std::string& producer, const Credit& credit,
                              std::span<const std::byte> request) override {
    if (dropped_.count(producer)) return Error{Errc::not_found, "gone"};
    grants[producer].push_back(credit);
    grants[producer].back().slot = free_.back();
    free_.pop_back();
    requests[position_of(credit)] = std::string(reinterpret_cast<const char*>(request.data()), request.size());
    return grants[producer].back().slot;
  }
  void release(std::uint32_t slot) override {
    EXPECT_EQ(std::count(free_.begin(), free_.end(), slot), 0) << "slot " << slot << " is free already";
    free_.push_back(slot);
  }
  void drop_producer(const std::string& producer) override {
    dropped_.insert({producer, true});
    for (const Credit& credit : grants[producer]) free_.push_back(credit.slot);
    grants.erase(producer);
  }
  ChannelStats stats() const override { return {}; }

  /// The producer finishes its oldest credit.
  void deliver(Feed& feed, const std::string& producer, const std::string& error = {}) {
    const Credit credit = grants[producer].front();
    grants[producer].pop_front();
    memory_[credit.slot] = position_of(credit);
    feed.callbacks().on_item(producer,
                             Item{.credit = credit, .bytes = error.empty() ? 8u : 0u, .xxh3 = 1, .error = error});
  }

  std::map<std::string, std::deque<Credit>> grants;
  std::map<std::int64_t, std::string> requests;  // of the last grant of a position

 private:
  std::vector<std::int64_t> memory_;
  std::vector<std::uint32_t> free_;
  std::map<std::string, bool> dropped_;
};

}  // namespace troupe::workers

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "comm/channel/arena_desk.h"
#include "comm/channel/channel.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {

inline std::ostream& operator<<(std::ostream& out, Transport transport) { return out << enum_name(transport); }

namespace testing_support {

using namespace std::chrono_literals;

/// Long enough for a loaded machine; a test that needs it all has failed.
inline constexpr auto kPatience = 20s;

struct Arrival {
  std::string producer;
  Item item;
  /// The item has gone on, and did not arrive yet; its credit alone is set.
  bool is_progress = false;
};

/// Collects a consumer's callbacks for a test's thread.
class Inbox {
 public:
  ChannelConsumer::Callbacks callbacks() {
    return {.on_producer = [this](const std::string& producer,
                                  std::uint32_t capacity) { add_producer(producer, capacity); },
            .on_item =
                [this](const std::string& producer, const Item& item) {
                  add_item({producer, item});
                },
            .on_progress =
                [this](const std::string& producer, const Credit& credit) {
                  add_item({producer, {.credit = credit}, /*is_progress=*/true});
                }};
  }
  /// The next item. Errors: deadline_exceeded: none within kPatience.
  Result<Arrival> next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return read_ < items_.size(); }))
      return Error{Errc::deadline_exceeded, "no item came"};
    return items_[read_++];
  }
  bool wait_for_producer(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      return std::any_of(producers_.begin(), producers_.end(), [&](const auto& p) { return p.first == name; });
    });
  }
  std::size_t num_items() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::vector<std::pair<std::string, std::uint32_t>> producers() const {
    const std::lock_guard lock(mutex_);
    return producers_;
  }

 private:
  void add_producer(const std::string& producer, std::uint32_t capacity) {
    {
      const std::lock_guard lock(mutex_);
      producers_.emplace_back(producer, capacity);
    }
    changed_.notify_all();
  }
  void add_item(Arrival arrival) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(arrival));
    }
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> items_;
  std::size_t read_ = 0;
  std::vector<std::pair<std::string, std::uint32_t>> producers_;
};

/// Looks every millisecond until `is_true` or kPatience is over: for counters, which nobody announces.
inline bool eventually(const std::function<bool()>& is_true) {
  std::mutex mutex;
  std::condition_variable nobody;
  std::unique_lock lock(mutex);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > until) return false;
    nobody.wait_for(lock, 1ms);
  }
  return true;
}

/// The bytes of the item of `tag`: length and contents depend on nothing else.
inline std::vector<std::byte> bytes_of(std::uint64_t tag, std::size_t max_bytes) {
  CounterRng rng(7, 1, tag);
  std::vector<std::byte> bytes(rng.below(static_cast<std::uint32_t>(max_bytes) + 1));
  for (auto& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  return bytes;
}

inline std::vector<std::byte> to_vector(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

/// Writes `bytes` to the credit's slot and describes them.
inline Item fill(ChannelProducer& producer, const Credit& credit, std::span<const std::byte> bytes) {
  const auto slot = producer.slot(credit);
  std::copy(bytes.begin(), bytes.end(), slot.begin());
  return Item{.credit = credit, .bytes = bytes.size(), .xxh3 = xxh3_64(bytes)};
}

/// Two loops, one per end, and consumers and producers on them. A transport needs no more than its name.
class ChannelRig {
 public:
  explicit ChannelRig(bool needs_loops) {
    if (!needs_loops) return;
    consumer_loop_ = IoLoop::start("consumer").value();
    producer_loop_ = IoLoop::start("producer").value();
  }
  std::unique_ptr<ChannelConsumer> open(Transport transport, Inbox& inbox, std::uint32_t slots, std::size_t slot_bytes,
                                        ChannelConsumer* share = nullptr) {
    ChannelOptions options{.name = "learner/" + std::to_string(num_opened_++),
                           .slots = slots,
                           .slot_bytes = slot_bytes,
                           .transport = transport};
    if (transport == Transport::shm) options.endpoint = folder_.endpoint(std::to_string(num_opened_));
    if (transport == Transport::zmq) options.endpoint = "tcp://127.0.0.1:*";
    return open_consumer(consumer_loop_.get(), options, inbox.callbacks(), share).value();
  }
  Result<std::unique_ptr<ChannelProducer>> try_dial(const std::string& address, const std::string& name,
                                                    std::chrono::milliseconds deadline = kPatience) {
    return open_producer(producer_loop_.get(), address, name, 2, deadline);
  }
  std::unique_ptr<ChannelProducer> dial(const ChannelConsumer& consumer, const std::string& name) {
    return try_dial(consumer.address(), name).value();
  }
  IoLoop* consumer_loop() { return consumer_loop_.get(); }
  IoLoop* producer_loop() { return producer_loop_.get(); }
  const ScratchFolder& folder() const { return folder_; }

 private:
  const ScratchFolder folder_{"/tmp"};
  const std::unique_ptr<ArenaDesk> desk_ = ArenaDesk::open(folder_.path()).value();
  int num_opened_ = 0;
  std::unique_ptr<IoLoop> consumer_loop_;
  std::unique_ptr<IoLoop> producer_loop_;
};

}  // namespace testing_support
}  // namespace troupe::comm

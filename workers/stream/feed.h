#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "workers/stream/fair_deal.h"
#include "workers/stream/order.h"

namespace troupe {

/// The consumer side of one learner rank's samples: decides which position each decoder makes next, keeps what arrives in
/// order, asks again for what a lost decoder owed, and frees slots when their step commits (design.md section 6). In
/// reinforcement learning samples are trajectories, producers are rollout workers, and a step of RankOrder is a round.
///
/// Thread-safe: the rank's thread takes and releases, channel threads report items, the shell reports lost producers.
class Feed {
 public:
  struct Options {
    RankOrder order;
    std::int64_t total_steps = 0;
    std::chrono::milliseconds item_deadline{60'000};  ///< a producer that holds one item longer is reported as stuck
    /// Above 0: trajectories. Position p is of lane p mod `lanes`, and a lane stays with the producer that made its previous
    /// position while shares of lanes are fair (FairDeal). Nothing is granted before allow(); nothing is held out.
    std::int64_t lanes = 0;
    /// With lanes: nothing is granted until so many producers have dialled in, once. Deterministic jobs wait for all, so that
    /// no lane moves while they come; others take who is there.
    std::int64_t await_producers = 0;
  };
  /// One sample of a micro-batch. `bytes` points into the arena and is valid until release() of its step.
  struct Sample {
    std::int64_t position = 0;
    std::span<const std::byte> bytes;
    std::uint64_t xxh3 = 0;
    std::string void_reason;  ///< non-empty: the sample is bad and `bytes` is empty
  };
  using OnStuck = std::function<void(const std::string& producer, std::int64_t position)>;

  Feed(Options options, OnStuck on_stuck);

  /// Callbacks for open_consumer; the feed must outlive the consumer.
  ChannelConsumer::Callbacks callbacks();
  /// The consumer that owns the arena. Others that share it route their grants through it.
  void set_consumer(ChannelConsumer* consumer);

  /// Begins (again) at `first_step` under a new fence; held-out samples 0..num_eval-1 are fetched first and kept. What was taken or arrived under an older fence is forgotten; slots that
  /// living producers still hold come back when their items arrive.
  void start(std::uint64_t fence, std::int64_t first_step, std::int64_t num_eval);
  /// With lanes: positions below `end` that were not allowed before may be granted now, each with the bytes of `request`
  /// (ChannelConsumer::grant). start() takes back what was allowed.
  void allow(std::int64_t end, std::vector<std::byte> request);
  /// Wakes take() with `aborted` until the next start().
  void cancel(const std::string& why);

  /// The samples of micro-batch `micro` (0-based within this rank) of `step`, in order. Blocks.
  /// Errors: deadline_exceeded (names the first missing position and who owes it), aborted.
  Result<std::vector<Sample>> take(std::int64_t step, std::int64_t micro, std::chrono::milliseconds deadline);
  /// A held-out sample by its index; copied out of the arena on arrival. Blocks. Errors: as take().
  Result<Sample> take_eval(std::int64_t index, std::chrono::milliseconds deadline);
  /// The step has committed (or was voided): its slots may be filled again.
  void release(std::int64_t step);
  /// The producer's exit is confirmed: what it owed is asked of others.
  void producer_gone(const std::string& producer);

  struct Stats {
    std::int64_t producers = 0, ready = 0, granted = 0, free_slots = 0, reissued = 0, stale = 0;
    double stall_seconds = 0;  ///< time take() was blocked
  };
  Stats stats() const;

 private:
  struct Key {
    Stream stream;
    std::int64_t position;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::uint32_t slot = 0;
    std::string producer;
    std::chrono::steady_clock::time_point granted_at;
    bool ready = false;
    bool reported_stuck = false;
    Item item;
  };
  struct Producer {
    std::uint32_t capacity = 1;
    std::uint32_t outstanding = 0;
  };

  void on_producer(const std::string& producer, std::uint32_t capacity);
  void on_item(const std::string& producer, const Item& item);
  void pump();  // requires mutex_, as all below but wait, missing and report_stuck
  void pump_lanes();
  bool grant(const std::string& producer, const Key& key, std::span<const std::byte> request);
  void want_allowed();
  bool next_wanted(Key& key);
  std::string* least_busy();
  void forget_producer(const std::string& name);
  void keep_eval(const Item& item);
  Error missing(const Key& key, std::chrono::milliseconds deadline) const;
  template <class Ready>
  Result<void> wait(Ready ready, const std::vector<Key>& keys, std::chrono::milliseconds deadline);
  void report_stuck(const std::vector<Key>& keys, std::unique_lock<std::mutex>& lock);

  const Options options_;
  const OnStuck on_stuck_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ChannelConsumer* consumer_ = nullptr;
  std::uint64_t fence_ = 0;
  std::string cancelled_ = "not started";
  std::int64_t next_item_ = 0;     // index into this rank's own order
  std::deque<Key> again_;          // positions whose producer was lost, smallest first; without lanes
  FairDeal deal_;                  // of lanes, as the next three
  std::set<std::int64_t> wanted_;  // allowed positions that nobody makes
  std::deque<std::pair<std::int64_t, std::vector<std::byte>>>
      allowed_;                                  // end of each range, and its request; ascending
  std::int64_t most_producers_ = 0;              // that were there at once
  std::map<Key, Entry> entries_;                 // granted or ready under the current fence
  std::map<std::uint32_t, std::string> strays_;  // slots held by living producers under an older fence
  std::vector<std::uint32_t> free_;
  std::map<std::string, Producer> producers_;
  std::map<std::int64_t, std::pair<Item, std::vector<std::byte>>> eval_;
  std::string chosen_;
  Stats stats_;
};

}  // namespace troupe

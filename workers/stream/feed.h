#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/channel/channel.h"
#include "workers/stream/balanced_assignment.h"
#include "workers/stream/order.h"

namespace troupe::workers {

/// The consumer side of one learner rank's samples: decides which position each decoder makes next, keeps what
/// arrives in order, asks again for what a lost decoder owed, and frees slots when their step commits
/// (docs/channels.md#a-slot). A sample of which two producers died counts as one that cannot be made, without lanes. In
/// reinforcement learning samples are trajectories, producers are rollout workers, and a step of RankOrder is a round.
///
/// Thread-safe: the rank's threads take and release, channel threads report items, the shell reports lost producers.
class Feed {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    RankOrder order;
    /// Steps of the job: positions of later steps are never granted.
    std::int64_t total_steps = 0;
    /// A producer that holds one item for longer is reported as stuck, once an item: since somebody waits for it, it
    /// was granted or has last gone on (ChannelProducer::progress), whichever came last.
    std::chrono::milliseconds item_deadline{60'000};
    /// Not owned.
    const base::Clock* clock = &base::system_clock();
    /// Above 0: trajectories. Position p is of lane p mod `lanes`, and a lane stays with the producer that made its
    /// previous position while shares of lanes are fair (BalancedAssignment). Nothing is granted before allow();
    /// nothing is held out.
    std::int64_t lanes = 0;
    /// With lanes: nothing is granted until so many producers have dialled in, once. Deterministic jobs wait for all,
    /// so that no lane moves while they come; others take who is there.
    std::int64_t await_producers = 0;
  };
  /// One sample of a micro-batch. `bytes` points into the arena and is valid until release() of its step.
  struct Sample {
    std::int64_t position = 0;
    std::span<const std::byte> bytes;
    /// XXH3-64 of `bytes`, as the producer computed it; the feed does not check it.
    std::uint64_t xxh3 = 0;
    /// Non-empty: the sample is bad, `bytes` is empty, and this is the producer's error.
    std::string void_reason;
    /// It is bad because two producers died of it.
    bool quarantined = false;
  };
  /// Called on the thread that waits in take() or take_eval(), without a lock of the feed; must not block.
  using OnStuck = std::function<void(const std::string& producer, std::int64_t position)>;
  /// A sample is given up: what it is, who died of it, and the void_reason that it will have. Called by
  /// producer_gone(), without a lock of the feed.
  using OnQuarantined =
      std::function<void(SampleKey key, const std::vector<std::string>& producers, const std::string& reason)>;

  Feed(const Options& options, OnStuck on_stuck, OnQuarantined on_quarantined = {});

  /// Callbacks for open_consumer; the feed must outlive the consumer.
  ChannelConsumer::Callbacks callbacks();
  /// The consumer that owns the arena, before the first start(); not owned, outlived by the feed. Others that share
  /// the arena route their grants through it.
  void set_consumer(ChannelConsumer* consumer);

  /// Begins (again) at `first_step` under a new fence; held-out samples 0..num_eval-1 are fetched first and kept.
  /// What was taken or arrived under an older fence is forgotten; slots that living producers still hold come back
  /// when their items arrive. Requires that no thread is in take().
  void start(std::uint64_t fence, std::int64_t first_step, std::int64_t num_eval);
  /// With lanes: positions below `end` that were not allowed before may be granted now, each with the bytes of
  /// `request` (ChannelConsumer::grant). start() takes back what was allowed.
  void allow(std::int64_t end, std::vector<std::byte> request);
  /// Ends every wait in take() and take_eval() with `aborted`, and refuses further ones, until the next start().
  /// Grants nothing meanwhile.
  void cancel(const std::string& why);

  /// The samples of micro-batch `micro` (0-based within this rank) of `step`, in order; any number of times before
  /// release() of the step. Blocks until `deadline` after `since` (none: now), from when on somebody has waited for
  /// them. The deadline of an item that is granted (again) or goes on meanwhile counts from when it last did; that of
  /// one that is granted to nobody from the last loss of a producer, and with lanes from when the producer of its lane
  /// last took an item, went on with one or delivered one.
  /// Errors: deadline_exceeded (names the first missing position and who owes it), aborted.
  Result<std::vector<Sample>> take(std::int64_t step, std::int64_t micro, std::chrono::milliseconds deadline,
                                   std::optional<Clock::time_point> since = {});
  /// A held-out sample by its index; copied out of the arena on arrival. Blocks. Errors: as take().
  Result<Sample> take_eval(std::int64_t index, std::chrono::milliseconds deadline);
  /// The step has committed (or was voided): its slots, and those of all earlier steps, may be filled again.
  void release(std::int64_t step);
  /// The producer's exit is confirmed, so it writes to no slot any more: what it owed is asked of others, held-out
  /// samples first, then by position. What it delivered stays. Safe for names that are unknown.
  /// `died`: its end speaks against what it was making. Credits are served oldest first and one of them waits, so that
  /// is the oldest that it owed, or of a producer of capacity c above 2 one of the oldest c - 1: each of these is a
  /// suspect, and is given alone to a producer that owes nothing else. The second such death of one sample, with no
  /// other to suspect, quarantines it for the life of the feed, over starts too.
  void producer_gone(const std::string& producer, bool died = false);
  /// The producer survives SIGKILL: what it owed is asked of others too, but it may still write to the slots that it
  /// was granted, so they stay out of use until producer_gone().
  void producer_unkillable(const std::string& producer);

  struct Stats {
    /// Now: connected producers, items that arrived, items under way, free slots. Since construction: positions asked
    /// again after a lost producer, and items that were not waited for any more: of an older fence, or of a lost
    /// producer.
    std::int64_t producers = 0, ready = 0, granted = 0, free_slots = 0, reissued = 0, stale = 0;
    /// Time that take() and take_eval() were blocked, in seconds.
    double stall_seconds = 0;
  };
  Stats stats() const;

 private:
  /// A credit that was granted, and the item once it has arrived.
  struct Entry {
    /// None: quarantined.
    std::optional<std::uint32_t> slot = {};
    std::string producer;
    /// Grants in their order.
    std::uint64_t serial = 0;
    /// How many its producer makes at a time.
    std::size_t at_a_time = 1;
    Clock::time_point granted_at;
    /// Of the newest progress; the least value: none yet.
    Clock::time_point progressed_at = Clock::time_point::min();
    /// Since when somebody has waited for it; none: nobody has yet.
    std::optional<Clock::time_point> awaited_since = {};
    bool ready = false;
    bool reported_stuck = false;
    // Given out by take(): its bytes are being read.
    bool taken = false;
    Item item;
  };
  /// Credits that a producer takes at once (`capacity`), and those it has.
  struct Producer {
    std::uint32_t capacity = 1;
    std::uint32_t outstanding = 0;
    /// When it last took, went on with or delivered an item; the least value: never.
    Clock::time_point moved_at = Clock::time_point::min();
    /// It makes a suspect, and gets nothing beside it.
    bool has_suspect = false;
    std::size_t at_a_time() const { return capacity > 2 ? capacity - 1 : 1; }
    bool has_room() const { return outstanding < capacity && !has_suspect; }
  };

  /// A producer dialled in (again): it may be granted `capacity` credits. On a channel's thread.
  void on_producer(const std::string& producer, std::uint32_t capacity);
  /// An item came: kept, or dropped and its slot freed where nobody waits for it. On a channel's thread.
  void on_item(const std::string& producer, const Item& item);
  /// An item that is under way has gone on. On a channel's thread.
  void on_progress(const std::string& producer, const Credit& credit);
  // Grants credits while there are free slots, positions to make and producers with room.
  // Requires mutex_, as all below but wait, missing and report_stuck.
  void pump();
  // pump() with lanes: positions in order, each to the owner of its lane.
  void pump_lanes();
  // Gives one position to a producer. False: its connection is gone, and it is forgotten.
  bool grant(const std::string& producer, const SampleKey& key, std::span<const std::byte> request);
  // Moves allowed positions of this rank into wanted_.
  void want_allowed();
  // Where unkillable producers hold slots and none is free: gives up the latest item that arrived for the oldest
  // position that is asked again, since nothing else makes that one. False: there is none.
  bool make_room();
  // Puts positions to ask again in order: held-out samples first, then the oldest, which the learner waits for.
  void sort_again();
  // The next position without lanes: those asked again first, then the rank's own order. False: nothing is left.
  bool next_wanted(SampleKey& key);
  // The producer with the fewest credits under way that has room, for a suspect one without any; null: none.
  std::string* least_busy(bool for_suspect = false);
  // Whether a producer that made it beside others died.
  bool is_suspect(const SampleKey& key) const { return suspects_.count(key) != 0; }
  // What the producer owed is wanted again; items that arrived stay, and so do its slots.
  void forget_producer(const std::string& name);
  // What a producer may be making: the oldest items that it owes, as many as it makes at a time.
  std::vector<SampleKey> in_hand(const std::string& name) const;
  // Puts a quarantined item where the learner looks for it. False: the key is none.
  bool settle_quarantined(const SampleKey& key);
  // Copies a held-out sample out of the arena, so that its slot is free at once.
  void keep_eval(const Item& item);
  // deadline_exceeded that names the position, its producer and how many are connected.
  Error missing(const SampleKey& key, std::chrono::milliseconds deadline) const;
  template <class Ready>
  Result<void> wait(Ready ready, const std::vector<SampleKey>& keys, std::chrono::milliseconds deadline,
                    std::optional<Clock::time_point> since = {});
  // When something last happened for a position that nobody makes: it was taken from a lost producer, or the owner of
  // its lane did something.
  Clock::time_point ungranted_moved_at(const SampleKey& key) const;
  // Since when the item that has been awaited longest stands still; `since` at the earliest.
  Clock::time_point still_since(const std::vector<SampleKey>& keys, Clock::time_point since) const;
  // Calls on_stuck_ for items that stand still longer than item_deadline, awaited from `since` on; unlocks meanwhile.
  void report_stuck(const std::vector<SampleKey>& keys, Clock::time_point since, std::unique_lock<std::mutex>& lock);

  const Options options_;
  const OnStuck on_stuck_;
  const OnQuarantined on_quarantined_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Not owned; null before set_consumer().
  ChannelConsumer* consumer_ = nullptr;
  // Of the newest start(): items of another one are not used.
  std::uint64_t fence_ = 0;
  // Why nothing is granted or given; empty: the feed runs.
  std::string cancelled_ = "not started";
  // Index into this rank's own order.
  std::int64_t next_item_ = 0;
  // Positions whose producer was lost, smallest first; without lanes.
  std::deque<SampleKey> again_;
  // When a position was last taken from a lost producer, or one that takes no credit; the least value: never.
  Clock::time_point reissued_at_ = Clock::time_point::min();
  // Slots may be held for good.
  bool has_unkillable_ = false;
  // Of lanes to producers. This and the next three are used with lanes only.
  BalancedAssignment deal_;
  // Allowed positions that no producer has been given.
  std::set<std::int64_t> wanted_;
  // End of each range that allow() opened, and its request; ascending.
  std::deque<std::pair<std::int64_t, std::vector<std::byte>>> allowed_;
  // The most producers that were connected at once.
  std::int64_t most_producers_ = 0;
  // Who died while it made an item, in order; why an item is not made any more.
  std::map<SampleKey, std::vector<std::string>> deaths_;
  // Of these, those that were made beside others.
  std::set<SampleKey> suspects_;
  std::map<SampleKey, std::string> quarantined_;
  std::uint64_t next_serial_ = 0;
  // Granted or ready under the current fence.
  std::map<SampleKey, Entry> entries_;
  // Connected producers by instance name.
  std::map<std::string, Producer> producers_;
  // Held-out samples by index, copied; they survive start().
  std::map<std::int64_t, std::pair<Item, std::vector<std::byte>>> eval_;
  std::string chosen_;
  Stats stats_;
};

}  // namespace troupe::workers

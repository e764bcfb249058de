#include "workers/stream/feed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/seconds.h"
#include "base/trace.h"

namespace troupe::workers {

namespace {
/// Producers that may die of one item.
constexpr std::size_t kDeathsOfOneItem = 2;
}  // namespace

Feed::Feed(const Options& options, OnStuck on_stuck, OnQuarantined on_quarantined)
    : options_(options), on_stuck_(std::move(on_stuck)), on_quarantined_(std::move(on_quarantined)) {}

ChannelConsumer::Callbacks Feed::callbacks() {
  return {.on_producer = [this](const std::string& name, std::uint32_t capacity) { on_producer(name, capacity); },
          .on_item = [this](const std::string& name, const Item& item) { on_item(name, item); },
          .on_progress = [this](const std::string& name, const Credit& credit) { on_progress(name, credit); }};
}

void Feed::set_consumer(ChannelConsumer* consumer) {
  std::lock_guard lock(mutex_);
  consumer_ = consumer;
}

void Feed::start(std::uint64_t fence, std::int64_t first_step, std::int64_t num_eval) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry.ready && entry.slot) consumer_->release(*entry.slot);
  }
  entries_.clear();
  again_.clear();
  wanted_.clear();
  allowed_.clear();
  for (std::int64_t index = 0; index < num_eval; ++index) {
    if (!eval_.count(index)) again_.push_back({Split::eval, index});
  }
  fence_ = fence;
  cancelled_.clear();
  next_item_ = first_step * options_.order.items_per_step();
  pump();
}

void Feed::allow(std::int64_t end, std::vector<std::byte> request) {
  std::lock_guard lock(mutex_);
  if (!allowed_.empty() && end <= allowed_.back().first) return;
  allowed_.emplace_back(end, std::move(request));
  want_allowed();
  pump();
}

void Feed::want_allowed() {
  const std::int64_t total = options_.total_steps * options_.order.items_per_step();
  for (; next_item_ < total; ++next_item_) {
    const std::int64_t position = options_.order.position_of_item(next_item_);
    if (position >= allowed_.back().first) return;
    wanted_.insert(position);
  }
}

void Feed::cancel(const std::string& why) {
  std::lock_guard lock(mutex_);
  cancelled_ = why.empty() ? "cancelled" : why;
  changed_.notify_all();
}

void Feed::on_producer(const std::string& producer, std::uint32_t capacity) {
  std::lock_guard lock(mutex_);
  producers_[producer].capacity = std::max(1u, capacity);
  deal_.add(producer);
  most_producers_ = std::max(most_producers_, static_cast<std::int64_t>(producers_.size()));
  pump();
}

void Feed::keep_eval(const Item& item) {
  std::vector<std::byte> bytes;
  if (item.error.empty()) {
    const auto slot = consumer_->slot(item.credit.slot).first(item.bytes);
    bytes.assign(slot.begin(), slot.end());
  }
  eval_[SampleKey::of(item.credit.tag).position] = {item, std::move(bytes)};
}

void Feed::on_item(const std::string& producer, const Item& item) {
  std::lock_guard lock(mutex_);
  if (auto known = producers_.find(producer); known != producers_.end() && known->second.outstanding > 0) {
    if (--known->second.outstanding == 0) known->second.has_suspect = false;
    known->second.moved_at = options_.clock->now();
  }
  const SampleKey key = SampleKey::of(item.credit.tag);
  const auto entry = entries_.find(key);
  const bool expected =
      entry != entries_.end() && item.credit.fence == fence_ && entry->second.slot == item.credit.slot;
  if (!expected) {
    // A producer finished what an older epoch asked for, or what is asked of another since it was lost.
    ++stats_.stale;
    consumer_->release(item.credit.slot);
  } else if (key.split == Split::eval) {
    keep_eval(item);
    consumer_->release(item.credit.slot);
    entries_.erase(entry);
  } else {
    entry->second.ready = true;
    entry->second.item = item;
    suspects_.erase(key);
  }
  pump();
  changed_.notify_all();
}

void Feed::on_progress(const std::string& producer, const Credit& credit) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(SampleKey::of(credit.tag));
  // what an older epoch asked for, or what is asked of another by now, tells nothing
  if (found == entries_.end() || credit.fence != fence_ || found->second.producer != producer) return;
  found->second.progressed_at = options_.clock->now();
  if (auto known = producers_.find(producer); known != producers_.end())
    known->second.moved_at = found->second.progressed_at;
  changed_.notify_all();
}

void Feed::forget_producer(const std::string& name) {
  producers_.erase(name);
  deal_.remove(name);
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->second.producer == name && !it->second.ready) {
      if (options_.lanes > 0) {
        wanted_.insert(it->first.position);
      } else {
        again_.push_back(it->first);
      }
      ++stats_.reissued;
      reissued_at_ = options_.clock->now();
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  sort_again();
}

void Feed::sort_again() {
  std::sort(again_.begin(), again_.end(), [](const SampleKey& a, const SampleKey& b) {
    return a.split != b.split ? a.split == Split::eval : a.position < b.position;
  });
}

std::vector<SampleKey> Feed::in_hand(const std::string& name) const {
  std::map<std::uint64_t, SampleKey> owed;  // in the order of grants
  std::size_t at_a_time = 1;
  for (const auto& [key, entry] : entries_) {
    if (entry.producer != name || entry.ready) continue;
    owed.emplace(entry.serial, key);
    at_a_time = entry.at_a_time;
  }
  std::vector<SampleKey> oldest;
  for (const auto& [serial, key] : owed) {
    if (oldest.size() < at_a_time) oldest.push_back(key);
  }
  return oldest;
}

bool Feed::settle_quarantined(const SampleKey& key) {
  const auto found = quarantined_.find(key);
  if (found == quarantined_.end()) return false;
  const Item item{.credit = {.tag = key.tag(), .fence = fence_}, .bytes = 0, .xxh3 = 0, .error = found->second};
  if (key.split == Split::eval) {
    eval_[key.position] = {item, {}};
  } else {
    Entry& entry = entries_[key];
    entry.ready = true;
    entry.item = item;
  }
  return true;
}

void Feed::producer_gone(const std::string& producer, bool died) {
  std::optional<SampleKey> quarantined;
  std::vector<std::string> dead;
  {
    std::lock_guard lock(mutex_);
    if (!consumer_) return;
    const auto held = died && options_.lanes == 0 ? in_hand(producer) : std::vector<SampleKey>();
    for (const SampleKey& key : held) {
      deaths_[key].push_back(producer);
      if (held.size() > 1) suspects_.insert(key);
    }
    if (held.size() == 1 && deaths_[held[0]].size() >= kDeathsOfOneItem) {
      quarantined = held[0];
      dead = deaths_[*quarantined];
      quarantined_[*quarantined] =
          fmt::format("{} died while they made it; it is not asked for again", fmt::join(dead, " and "));
      deaths_.erase(*quarantined);
      suspects_.erase(*quarantined);
    }
    consumer_->drop_producer(producer);
    forget_producer(producer);
    if (quarantined) {
      // Whoever waits for it need not wait for another producer.
      std::erase(again_, *quarantined);
      settle_quarantined(*quarantined);
    }
    pump();
    changed_.notify_all();
  }
  if (quarantined && on_quarantined_)
    on_quarantined_(*quarantined, dead, fmt::format("{} died while they made it", fmt::join(dead, " and ")));
}

void Feed::producer_unkillable(const std::string& producer) {
  std::lock_guard lock(mutex_);
  if (!consumer_) return;
  has_unkillable_ = true;
  forget_producer(producer);
  pump();
  changed_.notify_all();
}

bool Feed::make_room() {
  if (!has_unkillable_ || again_.empty()) return false;
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    const auto& [key, entry] = *it;
    if (key.split != Split::train || !entry.ready || entry.taken || !entry.slot) continue;
    if (again_.front().split == Split::train && key.position < again_.front().position) return false;
    consumer_->release(*entry.slot);
    again_.push_back(key);
    entries_.erase(std::next(it).base());
    sort_again();
    return true;
  }
  return false;
}

bool Feed::next_wanted(SampleKey& key) {
  if (!again_.empty()) {
    key = again_.front();
    again_.pop_front();
    return true;
  }
  if (next_item_ >= options_.total_steps * options_.order.items_per_step()) return false;
  key = {Split::train, options_.order.position_of_item(next_item_++)};
  return true;
}

std::string* Feed::least_busy(bool for_suspect) {
  std::uint32_t best = 0;
  chosen_.clear();
  for (const auto& [name, producer] : producers_) {
    if (!producer.has_room() || (for_suspect && producer.outstanding > 0)) continue;
    if (chosen_.empty() || producer.outstanding < best) {
      chosen_ = name;
      best = producer.outstanding;
    }
  }
  return chosen_.empty() ? nullptr : &chosen_;
}

void Feed::pump() {
  if (!consumer_ || !cancelled_.empty()) return;
  if (options_.lanes > 0) return pump_lanes();
  while (true) {
    const std::string* producer = least_busy();
    if (!producer || (consumer_->free_slots() == 0 && !make_room())) return;
    SampleKey key;
    if (!next_wanted(key)) return;
    if (settle_quarantined(key)) continue;
    if (is_suspect(key)) producer = least_busy(/*for_suspect=*/true);
    // nobody gets anything until one has made what it owes
    if (!producer) return again_.push_front(key);
    if (!grant(*producer, key, {})) again_.push_front(key);
  }
}

void Feed::pump_lanes() {
  if (most_producers_ < options_.await_producers) return;
  for (auto it = wanted_.begin(); it != wanted_.end() && consumer_->free_slots() > 0;) {
    const std::string* const owner = deal_.deal(*it % options_.lanes);
    if (!owner) return;
    const Producer& producer = producers_.at(*owner);
    if (producer.outstanding >= producer.capacity) {
      ++it;
      continue;
    }
    const auto range =
        std::find_if(allowed_.begin(), allowed_.end(), [&](const auto& entry) { return *it < entry.first; });
    // a refused grant takes the owner out of the assignment: the same position again
    if (grant(*owner, {Split::train, *it}, range->second)) it = wanted_.erase(it);
  }
}

bool Feed::grant(const std::string& producer, const SampleKey& key, std::span<const std::byte> request) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): of a table that this may change
  const std::string name = producer;
  const auto slot = consumer_->grant(name, {.tag = key.tag(), .fence = fence_}, request);
  if (!slot) {
    // Its connection is gone; the node's report of its exit may come later. What it owes is asked of others then.
    log::warn("feed: {} takes no credit ({})", name, slot.error().message());
    producers_.erase(name);
    deal_.remove(name);
    reissued_at_ = options_.clock->now();
    return false;
  }
  Producer& owner = producers_[name];
  ++owner.outstanding;
  owner.moved_at = options_.clock->now();
  owner.has_suspect = is_suspect(key);
  entries_[key] = Entry{.slot = *slot,
                        .producer = name,
                        .serial = next_serial_++,
                        .at_a_time = owner.at_a_time(),
                        .granted_at = owner.moved_at,
                        .item = {}};
  return true;
}

void Feed::report_stuck(const std::vector<SampleKey>& keys, Clock::time_point since,
                        std::unique_lock<std::mutex>& lock) {
  const auto now = options_.clock->now();
  std::vector<std::pair<std::string, std::int64_t>> stuck;
  for (const SampleKey& key : keys) {
    const auto entry = entries_.find(key);
    if (entry == entries_.end() || entry->second.ready || entry->second.reported_stuck) continue;
    // A grant ahead of time waits behind others; who takes with short deadlines has waited since the first.
    if (!entry->second.awaited_since) entry->second.awaited_since = since;
    const auto moved_at =
        std::max({*entry->second.awaited_since, entry->second.granted_at, entry->second.progressed_at});
    if (now - moved_at < options_.item_deadline) continue;
    entry->second.reported_stuck = true;
    stuck.emplace_back(entry->second.producer, key.position);
  }
  if (stuck.empty() || !on_stuck_) return;
  lock.unlock();
  for (const auto& [producer, position] : stuck) on_stuck_(producer, position);
  lock.lock();
}

Error Feed::missing(const SampleKey& key, std::chrono::milliseconds deadline) const {
  const auto entry = entries_.find(key);
  std::string owner = entry == entries_.end() ? "nobody: no producer has room for it" : entry->second.producer;
  if (entry == entries_.end() && options_.lanes > 0 && (allowed_.empty() || key.position >= allowed_.back().first)) {
    owner = fmt::format("nobody: positions below {} are allowed", allowed_.empty() ? 0 : allowed_.back().first);
  } else if (entry == entries_.end() && most_producers_ < options_.await_producers) {
    owner = fmt::format("nobody: {} producers are awaited", options_.await_producers);
  }
  return {Errc::deadline_exceeded,
          fmt::format("waited {} ms for {} position {}, owed by {}; {} producers are connected", deadline.count(),
                      key.split == Split::eval ? "held-out" : "training", key.position, owner, producers_.size())};
}

Feed::Clock::time_point Feed::ungranted_moved_at(const SampleKey& key) const {
  if (options_.lanes == 0 || !wanted_.count(key.position)) return reissued_at_;
  // its turn comes when the lane's owner has made what it holds
  const std::string* const owner = deal_.wanted(key.position % options_.lanes);
  return owner ? std::max(reissued_at_, producers_.at(*owner).moved_at) : reissued_at_;
}

Feed::Clock::time_point Feed::still_since(const std::vector<SampleKey>& keys, Clock::time_point since) const {
  auto earliest = Clock::time_point::max();
  for (const SampleKey& key : keys) {
    const auto entry = entries_.find(key);
    if (entry != entries_.end() && entry->second.ready) continue;
    const auto moved_at = entry == entries_.end() ? ungranted_moved_at(key)
                                                  : std::max(entry->second.granted_at, entry->second.progressed_at);
    earliest = std::min(earliest, std::max(since, moved_at));
  }
  return earliest == Clock::time_point::max() ? since : earliest;
}

template <class Ready>
Result<void> Feed::wait(Ready ready, const std::vector<SampleKey>& keys, std::chrono::milliseconds deadline,
                        std::optional<Clock::time_point> since) {
  const Span span("wait for items", SpanKind::wait);
  std::unique_lock lock(mutex_);
  const auto begin = options_.clock->now();
  while (cancelled_.empty() && !ready()) {
    const auto now = options_.clock->now();
    const auto until = still_since(keys, since.value_or(begin)) + deadline;
    if (now >= until) {
      for (const SampleKey& key : keys) {
        const auto entry = entries_.find(key);
        if (entry == entries_.end() || !entry->second.ready) return missing(key, deadline);
      }
    }
    changed_.wait_for(
        lock, std::min<Clock::duration>(until - now, options_.item_deadline / 4 + std::chrono::milliseconds(1)));
    report_stuck(keys, since.value_or(begin), lock);
  }
  stats_.stall_seconds += Seconds(options_.clock->now() - begin).count();
  if (!cancelled_.empty()) return Error{Errc::aborted, "feed: " + cancelled_};
  return {};
}

Result<std::vector<Feed::Sample>> Feed::take(std::int64_t step, std::int64_t micro, std::chrono::milliseconds deadline,
                                             std::optional<Clock::time_point> since) {
  std::vector<SampleKey> keys;
  for (std::int64_t i = 0; i < options_.order.micro_batch; ++i) {
    keys.push_back({Split::train, options_.order.position(step, micro, i)});
  }
  const auto ready = [&] {
    return std::all_of(keys.begin(), keys.end(), [&](const SampleKey& key) {
      const auto entry = entries_.find(key);
      return entry != entries_.end() && entry->second.ready;
    });
  };
  TROUPE_TRY(wait(ready, keys, deadline, since));
  std::lock_guard lock(mutex_);
  std::vector<Sample> samples;
  for (const SampleKey& key : keys) {
    entries_.at(key).taken = true;
    const Item& item = entries_.at(key).item;
    Sample sample{.position = key.position,
                  .bytes = {},
                  .xxh3 = item.xxh3,
                  .void_reason = item.error,
                  .quarantined = quarantined_.count(key) != 0};
    if (item.error.empty()) sample.bytes = consumer_->slot(item.credit.slot).first(item.bytes);
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<Feed::Sample> Feed::take_eval(std::int64_t index, std::chrono::milliseconds deadline) {
  const std::vector<SampleKey> keys{{Split::eval, index}};
  TROUPE_TRY(wait([&] { return eval_.count(index) != 0; }, keys, deadline));
  std::lock_guard lock(mutex_);
  const auto& [item, bytes] = eval_.at(index);
  return Sample{.position = index,
                .bytes = bytes,
                .xxh3 = item.xxh3,
                .void_reason = item.error,
                .quarantined = quarantined_.count(keys[0]) != 0};
}

void Feed::release(std::int64_t step) {
  std::lock_guard lock(mutex_);
  const SampleKey end{Split::train, (step + 1) * options_.order.global_batch};
  for (auto it = entries_.lower_bound({Split::train, 0}); it != entries_.end() && it->first < end;) {
    if (it->second.ready && it->second.slot) consumer_->release(*it->second.slot);
    it = entries_.erase(it);
  }
  // The newest range stays: it says what is allowed.
  while (allowed_.size() > 1 && allowed_.front().first <= end.position) allowed_.pop_front();
  pump();
}

Feed::Stats Feed::stats() const {
  std::lock_guard lock(mutex_);
  Stats s = stats_;
  s.producers = static_cast<std::int64_t>(producers_.size());
  s.free_slots = consumer_ ? consumer_->free_slots() : 0;
  for (const auto& [key, entry] : entries_) ++(entry.ready ? s.ready : s.granted);
  return s;
}

}  // namespace troupe::workers

#include "workers/inference/serve/policy_service.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "workers/inference/serve/action_reply.h"
#include "workers/inference/serve/session_table.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick =
    std::chrono::milliseconds(500);  // longest sleep of both threads; idle sessions are looked for so often

/// A request that somebody waits for. Answered once: the first answer counts.
struct Call {
  PolicyService::Done done;
  Clock::time_point arrived;
  std::atomic<bool> answered{false};
};

struct Item {
  enum class Kind { infer, reset, forget } kind = Kind::infer;
  PolicyRequest request;
  std::shared_ptr<Call> call;
  std::size_t bytes = 0;
};

std::size_t image_bytes(const PolicyRequest& request) {
  std::size_t bytes = 0;
  for (const Observation& row : request.rows) {
    for (const auto& [view, images] : row.images) bytes += images.data.size();
  }
  return bytes;
}

class Service final : public PolicyService {
 public:
  Service(std::unique_ptr<Policy> policy, const PolicyServiceOptions& options)
      : policy_(std::move(policy)),
        options_(options),
        info_(policy_->info()),
        sessions_({options.max_sessions, options.idle_timeout, options.evict_after}, *policy_) {}
  ~Service() override { stop(); }

  Result<void> launch() {
    const BlockedSignals blocked;
    try {
      worker_ = std::thread([this] { work(); });
      watch_ = std::thread([this] { watch(); });
      pthread_setname_np(worker_.native_handle(), "policy");
      pthread_setname_np(watch_.native_handle(), "policy watch");
    } catch (const std::system_error& e) {
      return Error{Errc::resource_exhausted, fmt::format("the policy service cannot start its threads: {}", e.what())};
    }
    return {};
  }

  const PolicyInfo& info() const override { return info_; }
  void infer(PolicyRequest request, Done done) override {
    Item item{Item::Kind::infer, std::move(request), make_call(std::move(done)), 0};
    item.bytes = image_bytes(item.request);
    put(std::move(item));
  }
  void reset(const std::string& session, Done done) override {
    put({Item::Kind::reset, {session, false, {}}, make_call(std::move(done)), 0});
  }
  void forget(const std::string& session) override {
    const std::lock_guard lock(mutex_);
    // not bounded by the queue: one for each session that ends
    if (!stopping_) queue_.push_back({Item::Kind::forget, {session, false, {}}, nullptr, 0});
    changed_.notify_all();
  }
  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (worker_.joinable()) worker_.join();
    if (watch_.joinable()) watch_.join();
  }

  bool is_healthy() const override {
    const std::lock_guard lock(mutex_);
    return !stopping_ && (!busy_since_ || Clock::now() - *busy_since_ < options_.request_timeout);
  }
  Stats stats() const override {
    const std::lock_guard lock(mutex_);
    Stats stats = stats_;
    stats.queued = waiting_;
    return stats;
  }

 private:
  static std::shared_ptr<Call> make_call(Done done) {
    auto call = std::make_shared<Call>();
    call->done = std::move(done);
    call->arrived = Clock::now();
    return call;
  }

  void put(Item item) {
    const std::shared_ptr<Call> call = item.call;
    std::optional<Error> refusal;
    {
      const std::lock_guard lock(mutex_);
      item.kind == Item::Kind::infer ? ++stats_.requests : ++stats_.resets;
      if (stopping_) {
        refusal.emplace(Errc::cancelled, "the server stops");
      } else if (waiting_ >= options_.queue || queued_bytes_ + item.bytes > options_.queue_bytes) {
        ++stats_.refused;
        refusal.emplace(
            Errc::resource_exhausted,
            fmt::format("{} requests wait ({} MiB); the queue takes {} and {} MiB: try again later (--queue)", waiting_,
                        queued_bytes_ >> 20, options_.queue, options_.queue_bytes >> 20));
      } else {
        ++waiting_;
        queued_bytes_ += item.bytes;
        deadlines_.push_back(call);
        queue_.push_back(std::move(item));
        changed_.notify_all();
      }
    }
    if (refusal) answer(*call, *refusal);
  }

  /// False if the request was answered before.
  bool answer(Call& call, Result<PolicyReply> result) {
    if (call.answered.exchange(true)) return false;
    {
      const double seconds = seconds_since(call.arrived);
      const std::lock_guard lock(mutex_);
      if (!result) ++stats_.errors;
      if (!result && result.error().code() == Errc::deadline_exceeded) ++stats_.late;
      stats_.latency_seconds += seconds;
      stats_.worst_latency_seconds = std::max(stats_.worst_latency_seconds, seconds);
    }
    call.done(std::move(result));
    return true;
  }

  // the policy's thread

  void work() {
    while (true) {
      std::vector<Item> batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kTick, [&] { return stopping_ || !queue_.empty(); });
        if (stopping_) break;
        batch = take_batch();
      }
      for (Item& item : batch) {
        if (item.kind != Item::Kind::infer) forget_or_reset(item);
      }
      std::erase_if(batch, [](const Item& item) { return item.kind != Item::Kind::infer; });
      if (!batch.empty()) run(batch);
      const std::int64_t expired = sessions_.expire(Clock::now());
      const std::lock_guard lock(mutex_);
      stats_.expired += static_cast<std::uint64_t>(expired);
      stats_.evicted = sessions_.evicted();
      stats_.sessions = sessions_.size();
    }
    cancel_rest();
  }

  /// What can be done at once: in order for each session, so nothing that follows a session's inference. Caller holds
  /// mutex_.
  std::vector<Item> take_batch() {
    std::vector<Item> batch;
    std::set<std::string> busy;
    std::int64_t rows = 0;
    for (auto item = queue_.begin(); item != queue_.end();) {
      const auto count = static_cast<std::int64_t>(item->request.rows.size());
      const bool is_infer = item->kind == Item::Kind::infer;
      if (busy.contains(item->request.session) || (is_infer && rows > 0 && rows + count > options_.max_batch)) {
        busy.insert(item->request.session);  // what follows must wait too
        ++item;
        continue;
      }
      if (is_infer) {
        busy.insert(item->request.session);
        rows += count;
      }
      if (item->kind != Item::Kind::forget) --waiting_;
      queued_bytes_ -= item->bytes;
      batch.push_back(std::move(*item));
      item = queue_.erase(item);
    }
    return batch;
  }

  void forget_or_reset(Item& item) {
    const auto result = guarded([&] {
      item.kind == Item::Kind::forget ? sessions_.erase(item.request.session) : sessions_.clear(item.request.session);
      return Result<PolicyReply>(PolicyReply{});
    });
    if (item.call) answer(*item.call, result);
  }

  /// One call of the policy for all of the batch whose frames are usable.
  void run(std::vector<Item>& batch) {
    std::vector<Observation> rows;
    std::vector<Item*> runs;
    for (Item& item : batch) {
      if (item.call->answered) {
        sessions_.clear(item.request.session);
        continue;
      }
      auto observed = guarded([&] {
        if (item.request.is_new_session) sessions_.clear(item.request.session);
        return sessions_.observe(item.request.session, std::move(item.request.rows), Clock::now());
      });
      if (!observed) {
        guarded_clear(item.request.session);
        answer(*item.call, observed.error());
        continue;
      }
      item.request.rows.resize(observed->size());  // how many chunks are its own
      rows.insert(rows.end(), std::make_move_iterator(observed->begin()), std::make_move_iterator(observed->end()));
      runs.push_back(&item);
    }
    if (rows.empty()) return;
    const auto begin = Clock::now();
    set_busy(begin);
    auto chunks = act(rows, runs);
    const double seconds = seconds_since(begin);
    set_busy(std::nullopt);
    count_batch(rows.size(), seconds);
    std::size_t first = 0;
    for (Item* item : runs) {
      const std::size_t count = item->request.rows.size();
      auto reply = collect(std::span(chunks).subspan(first, count), 1000 * seconds);
      first += count;
      const bool failed = !reply;
      // a client that was told of a deadline starts anew
      if (!answer(*item->call, std::move(reply)) || failed) guarded_clear(item->request.session);
    }
  }

  /// One result for each row. When the policy throws on several requests, each is tried alone, from a fresh state:
  /// nobody pays for another's observation, and what the failed call left behind is not built on.
  std::vector<Result<ActionChunk>> act(std::span<const Observation> rows, const std::vector<Item*>& runs) {
    auto together = act_once(rows);
    if (together) return std::move(*together);
    if (runs.size() == 1) return std::vector<Result<ActionChunk>>(rows.size(), together.error());
    std::vector<Result<ActionChunk>> chunks;
    for (const Item* item : runs) {
      const auto own = rows.subspan(chunks.size(), item->request.rows.size());
      auto alone = guarded([&]() -> Result<std::vector<Result<ActionChunk>>> {
        for (const Observation& row : own) policy_->reset(row.episode);
        return act_once(own);
      });
      if (!alone) alone = std::vector<Result<ActionChunk>>(own.size(), alone.error());
      for (auto& chunk : *alone) chunks.push_back(std::move(chunk));
    }
    return chunks;
  }
  Result<std::vector<Result<ActionChunk>>> act_once(std::span<const Observation> rows) {
    auto chunks = guarded([&]() -> Result<std::vector<Result<ActionChunk>>> { return policy_->act(rows); });
    if (chunks && chunks->size() != rows.size()) {
      return Error{Errc::internal,
                   fmt::format("the policy gave {} results for {} observations", chunks->size(), rows.size())};
    }
    return chunks;
  }

  Result<PolicyReply> collect(std::span<Result<ActionChunk>> chunks, double infer_ms) const {
    PolicyReply reply{{}, infer_ms};
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      auto checked = chunks[i] ? check_chunk(*chunks[i], info_) : Result<void>(chunks[i].error());
      if (!checked)
        return chunks.size() == 1 ? checked.error() : checked.error().with(fmt::format("observation {}", i));
      reply.rows.push_back(std::move(*chunks[i]));
    }
    return reply;
  }

  /// What `body` gives, or what it throws as an error: LibTorch's calls throw.
  template <class Body>
  auto guarded(Body body) -> decltype(body()) {
    try {
      return body();
    } catch (const std::exception& e) {
      log::error("serve: the policy failed: {}", e.what());
      return Error{Errc::internal, fmt::format("the policy failed: {}", e.what())};
    }
  }
  void guarded_clear(const std::string& session) {
    const auto cleared = guarded([&] {
      sessions_.clear(session);
      return Result<void>();
    });
    if (!cleared) log::error("serve: session {} cannot be reset: {}", session, cleared.error().message());
  }

  void set_busy(std::optional<Clock::time_point> since) {
    const std::lock_guard lock(mutex_);
    busy_since_ = since;
  }
  void count_batch(std::size_t rows, double seconds) {
    const std::lock_guard lock(mutex_);
    ++stats_.batches;
    stats_.rows += rows;
    stats_.largest_batch = std::max<std::uint64_t>(stats_.largest_batch, rows);
    stats_.infer_seconds += seconds;
  }

  void cancel_rest() {
    std::deque<Item> rest;
    {
      const std::lock_guard lock(mutex_);
      rest.swap(queue_);
      waiting_ = 0;
      queued_bytes_ = 0;
    }
    for (Item& item : rest) {
      if (item.call) answer(*item.call, Error{Errc::cancelled, "the server stops"});
    }
  }

  // the watch's thread

  void watch() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      // all have the same timeout, so the front is the next; answered ones only wait for their turn
      while (!deadlines_.empty() && (is_over(deadlines_.front()))) {
        const auto call = deadlines_.front().lock();
        deadlines_.pop_front();
        if (!call || call->answered) continue;
        lock.unlock();
        answer(*call, Error{Errc::deadline_exceeded, fmt::format("no answer within {} ms (--request-timeout)",
                                                                 options_.request_timeout.count())});
        lock.lock();
      }
      auto until = Clock::now() + kTick;
      if (!deadlines_.empty()) {
        if (const auto call = deadlines_.front().lock())
          until = std::min(until, call->arrived + options_.request_timeout);
      }
      changed_.wait_until(lock, until, [&] { return stopping_; });
    }
  }
  bool is_over(const std::weak_ptr<Call>& weak) const {
    const auto call = weak.lock();
    return !call || call->answered || Clock::now() >= call->arrived + options_.request_timeout;
  }

  const std::unique_ptr<Policy> policy_;  // the policy's thread only, once it runs
  const PolicyServiceOptions options_;
  const PolicyInfo info_;
  SessionTable sessions_;  // the policy's thread only

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::deque<Item> queue_;
  std::deque<std::weak_ptr<Call>> deadlines_;
  std::int64_t waiting_ = 0;
  std::size_t queued_bytes_ = 0;
  std::optional<Clock::time_point> busy_since_;
  Stats stats_;
  bool stopping_ = false;

  std::thread worker_, watch_;
};

}  // namespace

Result<std::unique_ptr<PolicyService>> PolicyService::start(std::unique_ptr<Policy> policy,
                                                            const PolicyServiceOptions& options) {
  auto service = std::make_unique<Service>(std::move(policy), options);
  TROUPE_TRY(service->launch());
  return std::unique_ptr<PolicyService>(std::move(service));
}

std::string status_json(const PolicyService& service) {
  const auto stats = service.stats();
  const auto mean = [](double sum, std::uint64_t count) { return count == 0 ? 0.0 : sum / static_cast<double>(count); };
  return nlohmann::json{{"policy", service.info().name},
                        {"embodiment", service.info().embodiment},
                        {"healthy", service.is_healthy()},
                        {"requests", stats.requests},
                        {"resets", stats.resets},
                        {"errors", stats.errors},
                        {"refused", stats.refused},
                        {"late", stats.late},
                        {"batches", stats.batches},
                        {"rows", stats.rows},
                        {"largest_batch", stats.largest_batch},
                        {"mean_batch", mean(static_cast<double>(stats.rows), stats.batches)},
                        {"mean_infer_ms", 1000 * mean(stats.infer_seconds, stats.batches)},
                        {"mean_latency_ms", 1000 * mean(stats.latency_seconds, stats.requests + stats.resets)},
                        {"worst_latency_ms", 1000 * stats.worst_latency_seconds},
                        {"sessions", stats.sessions},
                        {"sessions_expired", stats.expired},
                        {"sessions_evicted", stats.evicted},
                        {"queued", stats.queued}}
      .dump();
}

}  // namespace troupe::workers

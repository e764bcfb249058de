#include "env/executor.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/check.h"

namespace troupe::env {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSlots = 64;
constexpr auto kSpin = std::chrono::microseconds(20);

// A slot's ticket: number of the batch in the upper half, next row in the lower.
constexpr std::uint32_t kNoRow = 0xffffffffu;
constexpr std::uint64_t make_ticket(std::uint32_t batch, std::uint32_t next) {
  return std::uint64_t{batch} << 32 | next;
}
constexpr std::uint32_t batch_of(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket >> 32); }
constexpr std::uint32_t next_of(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

struct Batch {
  std::int64_t rows = 0;
  std::function<void(std::int64_t)> row;
  std::function<void()> done;
};

/// A batch under way. `rows` and the functions change only while the ticket has no row left, and a claim is a
/// compare-exchange of the whole ticket: it succeeds only for the batch whose `rows` was read.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> ticket{make_ticket(0, kNoRow)};
  std::atomic<std::uint32_t> rows{0};
  Batch batch;
  alignas(64) std::atomic<std::int64_t> left{0};
};

struct Claim {
  int slot = 0;
  std::uint32_t begin = 0, end = 0;
};

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(Options options) : options_(options) {
    const std::vector<int> cpus = options.pin ? allowed_cpus() : std::vector<int>{};
    const BlockedSignals blocked;
    for (std::int64_t t = 0; t < options.threads; ++t) {
      threads_.emplace_back([this] { work(); });
      if (!cpus.empty()) pin(threads_.back(), cpus[static_cast<std::size_t>(t) % cpus.size()]);
    }
  }
  ~ThreadExecutor() override {
    {
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [this] { return under_way_ == 0; });
      stopping_ = true;
    }
    woken_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::int64_t threads() const override { return options_.threads; }
  double idle_seconds() const override { return 1e-9 * static_cast<double>(idle_ns_.load(std::memory_order_relaxed)); }

  void help(const std::function<bool()>& is_done) override {
    while (!is_done()) {
      if (const auto rows = claim())
        execute(*rows);
      else if (!spin(is_done))
        return;
    }
  }

  void run(std::int64_t rows, std::function<void(std::int64_t)> row, std::function<void()> done,
           Caller caller) override {
    TROUPE_CHECK(rows >= 1 && rows < kNoRow, "a batch has rows, fewer than 2^32 - 1");
    const std::int64_t helping = caller == Caller::helps ? 1 : 0;
    std::int64_t wake = 0;
    {
      const std::lock_guard lock(mutex_);
      ++under_way_;
      Batch batch{rows, std::move(row), std::move(done)};
      if (free_slots_ == 0)
        waiting_.push_back(std::move(batch));
      else
        publish(std::move(batch));
      wake = std::min({rows - helping, sleepers_, options_.threads - helping});
    }
    for (; wake > 0; --wake) woken_.notify_one();
  }

 private:
  static void pin(std::thread& thread, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  }

  /// With the mutex held and a free slot.
  void publish(Batch batch) {
    const int index = std::countr_zero(free_slots_);
    free_slots_ &= free_slots_ - 1;
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    const auto rows = static_cast<std::uint32_t>(batch.rows);
    slot.left.store(batch.rows, std::memory_order_relaxed);
    slot.batch = std::move(batch);
    slot.rows.store(rows, std::memory_order_relaxed);
    // The bit before the ticket: a claimer that takes the last rows clears it, and must not do so before it is set.
    open_.fetch_or(std::uint64_t{1} << index, std::memory_order_relaxed);
    slot.ticket.store(make_ticket(++published_, 0), std::memory_order_release);
  }

  std::uint32_t claim_size(std::uint32_t rows, std::uint32_t next) const {
    const auto threads = static_cast<std::uint32_t>(options_.threads);
    const std::uint32_t left = rows - next;
    if (options_.claim > 0) return std::min(left, static_cast<std::uint32_t>(options_.claim));
    if (left <= rows / 4) return 1;
    return std::clamp(rows / (8 * threads), 1u, 16u);
  }

  /// Rows of the oldest batch that has any left.
  std::optional<Claim> claim() {
    for (;;) {
      int oldest = -1;
      std::uint64_t ticket = 0;
      for (std::uint64_t open = open_.load(std::memory_order_relaxed); open != 0; open &= open - 1) {
        const int index = std::countr_zero(open);
        const std::uint64_t found = slots_[static_cast<std::size_t>(index)].ticket.load(std::memory_order_acquire);
        if (next_of(found) == kNoRow) continue;
        // batch numbers wrap: the sign of their difference says which is older
        if (oldest < 0 || static_cast<std::int32_t>(batch_of(found) - batch_of(ticket)) < 0)
          oldest = index, ticket = found;
      }
      if (oldest < 0) return std::nullopt;
      Slot& slot = slots_[static_cast<std::size_t>(oldest)];
      const std::uint32_t rows = slot.rows.load(std::memory_order_relaxed), begin = next_of(ticket);
      if (begin >= rows) continue;  // `rows` is of another batch: the exchange below would fail
      const std::uint32_t end = begin + claim_size(rows, begin);
      const std::uint64_t next = make_ticket(batch_of(ticket), end == rows ? kNoRow : end);
      if (!slot.ticket.compare_exchange_strong(ticket, next, std::memory_order_acq_rel, std::memory_order_relaxed))
        continue;
      // This thread still holds rows of the batch, so the slot cannot have been opened again.
      if (end == rows) open_.fetch_and(~(std::uint64_t{1} << oldest), std::memory_order_relaxed);
      return Claim{oldest, begin, end};
    }
  }

  void execute(const Claim& claim) {
    Slot& slot = slots_[static_cast<std::size_t>(claim.slot)];
    for (std::uint32_t i = claim.begin; i < claim.end; ++i) slot.batch.row(i);
    const std::int64_t rows = claim.end - claim.begin;
    if (slot.left.fetch_sub(rows, std::memory_order_acq_rel) != rows) return;
    // The last thread of the batch: its slot goes to the next before the caller hears, who may run another at once.
    Batch batch = std::move(slot.batch);
    {
      const std::lock_guard lock(mutex_);
      free_slots_ |= std::uint64_t{1} << claim.slot;
      if (!waiting_.empty()) {
        publish(std::move(waiting_.front()));
        waiting_.pop_front();
        if (sleepers_ > 0) woken_.notify_all();
      }
    }
    batch.done();
    batch = {};
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) finished_.notify_all();
  }

  /// True as soon as a batch is open or `is_done`, false after kSpin without.
  template <class IsDone>
  bool spin(const IsDone& is_done) const {
    const auto end = Clock::now() + kSpin;
    do {
      for (int i = 0; i < 16; ++i) {
        if (open_.load(std::memory_order_relaxed) != 0) return true;
        pause();
      }
      if (is_done()) return true;
    } while (Clock::now() < end);
    return false;
  }

  void work() {
    for (;;) {
      if (const auto rows = claim()) {
        execute(*rows);
        continue;
      }
      if (spin([] { return false; })) continue;
      // run() publishes and looks for sleepers under this mutex: a batch that is not seen here wakes this thread.
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      if (open_.load(std::memory_order_relaxed) != 0) continue;
      const auto begin = Clock::now();
      ++sleepers_;
      woken_.wait(lock, [this] { return stopping_ || open_.load(std::memory_order_relaxed) != 0; });
      --sleepers_;
      idle_ns_.fetch_add((Clock::now() - begin) / std::chrono::nanoseconds(1), std::memory_order_relaxed);
    }
  }

  const Options options_;
  std::array<Slot, kSlots> slots_;
  alignas(64) std::atomic<std::uint64_t> open_{0};  // bit of each slot whose batch may have rows left
  alignas(64) std::atomic<std::int64_t> idle_ns_{0};
  std::mutex mutex_;  // of all below
  std::condition_variable woken_, finished_;
  std::uint64_t free_slots_ = ~std::uint64_t{0};
  std::deque<Batch> waiting_;  // batches beyond the slots
  std::uint32_t published_ = 0;
  std::int64_t under_way_ = 0, sleepers_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Rows run on the thread that asks for them.
class CallerExecutor final : public Executor {
 public:
  std::int64_t threads() const override { return 0; }
  double idle_seconds() const override { return 0; }
  void run(std::int64_t rows, std::function<void(std::int64_t)> row, std::function<void()> done, Caller) override {
    for (std::int64_t i = 0; i < rows; ++i) row(i);
    done();
  }
  void help(const std::function<bool()>&) override {}
};

}  // namespace

std::unique_ptr<Executor> Executor::make(Options options) {
  TROUPE_CHECK(options.threads >= 0 && options.claim >= 0, "an executor has no less than no threads");
  if (options.threads == 0) return std::make_unique<CallerExecutor>();
  return std::make_unique<ThreadExecutor>(options);
}

}  // namespace troupe::env

#include "kernels/team.h"

#include <algorithm>
#include <chrono>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace troupe::kernels {
namespace {

// The bits of a state: members inside, most members, closed, number of the piece.
constexpr std::uint64_t kOne = 1, kCountMask = 0xFFFF;
constexpr int kMostShift = 16, kNumberShift = 33;
constexpr std::uint64_t kClosed = kOne << 32;

constexpr std::uint64_t inside(std::uint64_t state) { return state & kCountMask; }
constexpr std::uint64_t most(std::uint64_t state) { return (state >> kMostShift) & kCountMask; }
constexpr std::uint64_t number(std::uint64_t state) { return state >> kNumberShift; }

/// How long a thread spins before it sleeps: longer than most pauses between two pieces. To wake a thread costs some
/// tens of microseconds.
constexpr std::chrono::microseconds kSpin{100};

void relax() {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

/// Whether `done()` came true within kSpin.
template <class F>
bool spin_until(const F& done) {
  constexpr int kBetweenClocks = 64;
  for (int i = 0; i < kBetweenClocks; ++i) {
    if (done()) return true;
    relax();
  }
  const auto end = std::chrono::steady_clock::now() + kSpin;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < kBetweenClocks; ++i) {
      if (done()) return true;
      relax();
    }
  }
  return false;
}

}  // namespace

void Team::run(std::int64_t parts, int members, Body body, const void* context) {
  body_ = body;
  context_ = context;
  parts_ = parts;
  next_.store(0, std::memory_order_relaxed);
  const std::uint64_t next_number = number(state_.load(std::memory_order_relaxed)) + 1;
  const auto limit = std::min<std::uint64_t>(static_cast<std::uint64_t>(members), kCountMask);
  state_.store(next_number << kNumberShift | limit << kMostShift, std::memory_order_release);
  news_.fetch_add(1);
  news_.notify_all();
  take_parts();
  wait_for_members(state_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed);
}

void Team::wait_for_members(State state) {
  const auto is_empty = [&] { return inside(state = state_.load(std::memory_order_acquire)) == 0; };
  if (inside(state) == 0 || spin_until(is_empty)) return;
  while (!is_empty()) state_.wait(state, std::memory_order_acquire);
}

void Team::take_parts() {
  for (auto part = next_.fetch_add(1); part < parts_; part = next_.fetch_add(1)) body_(context_, part);
}

bool Team::join(State& seen) {
  State state = state_.load(std::memory_order_acquire);
  while (number(state) != number(seen) && (state & kClosed) == 0 && inside(state) < most(state)) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      seen = state;
      return true;
    }
  }
  seen = state;
  return false;
}

void Team::leave() {
  const State before = state_.fetch_sub(1, std::memory_order_acq_rel);
  if (inside(before) == 1 && (before & kClosed) != 0) state_.notify_all();
}

void Team::serve() {
  State seen = 0;
  std::uint32_t heard = 0;
  while (!is_dismissed_.load(std::memory_order_acquire)) {
    if (join(seen)) {
      take_parts();
      leave();
    }
    const auto has_news = [&] { return news_.load(std::memory_order_acquire) != heard; };
    if (!spin_until(has_news)) news_.wait(heard, std::memory_order_acquire);
    heard = news_.load(std::memory_order_acquire);
  }
}

void Team::dismiss() {
  is_dismissed_.store(true, std::memory_order_release);
  news_.fetch_add(1);
  news_.notify_all();
}

}  // namespace troupe::kernels

#include "model/step/happens_before.h"

#include <algorithm>

namespace troupe::model {
namespace {

VectorClock nothing() {
  VectorClock clock;
  clock.fill(-1);
  return clock;
}

void raise(VectorClock& clock, const VectorClock& other) {
  for (std::size_t s = 0; s < kOpStreams; ++s) clock[s] = std::max(clock[s], other[s]);
}

std::size_t stream_of(const Op& op) { return static_cast<std::size_t>(op.stream); }

/// What is done when `op` is, and it began at `clock`.
VectorClock end_of(const Op& op, int number, VectorClock clock) {
  clock[stream_of(op)] = number;
  return clock;
}

}  // namespace

std::vector<VectorClock> clocks_of(std::span<const Op> operations) {
  std::vector<VectorClock> begins;
  std::array<VectorClock, kOpStreams> last;
  last.fill(nothing());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Op& op = operations[i];
    VectorClock clock = last[stream_of(op)];
    for (const int wait : op.waits) {
      const auto w = static_cast<std::size_t>(wait);
      raise(clock, end_of(operations[w], wait, begins[w]));
    }
    begins.push_back(clock);
    last[stream_of(op)] = end_of(op, static_cast<int>(i), clock);
  }
  return begins;
}

void EventOrder::add(std::vector<Op>& operations) {
  Op& op = operations.back();
  const auto number = static_cast<int>(operations.size()) - 1;
  // of each stream, the last operation that has to be done
  VectorClock needed = nothing();
  const auto need = [&](int earlier) {
    if (earlier < 0) return;
    int& last = needed[stream_of(operations[static_cast<std::size_t>(earlier)])];
    last = std::max(last, earlier);
  };
  for (const Access& access : op.accesses) {
    auto& regions = regions_[static_cast<std::size_t>(access.range.arena)];
    Region* own = nullptr;
    for (Region& region : regions) {
      if (region.range == access.range) own = &region;
      if (!overlap(region.range, access.range)) continue;
      need(region.writer);
      if (access.writes) std::for_each(region.readers.begin(), region.readers.end(), need);
    }
    if (own == nullptr) own = &regions.emplace_back(Region{access.range, -1, nothing()});
    if (access.writes) {
      own->writer = number;
      own->readers = nothing();
    } else {
      own->readers[stream_of(op)] = number;
    }
  }

  const int previous = last_of_stream_[stream_of(op)];
  const auto end = [&](int earlier) {
    const auto e = static_cast<std::size_t>(earlier);
    return end_of(operations[e], earlier, clocks_[e]);
  };
  VectorClock clock = previous < 0 ? nothing() : end(previous);
  for (std::size_t s = 0; s < kOpStreams; ++s) {
    const int wanted = needed[s];
    if (wanted == number || clock[s] >= wanted) continue;
    const bool is_implied = std::any_of(needed.begin(), needed.end(), [&](int other) {
      return other >= 0 && other != number && other != wanted && end(other)[s] >= wanted;
    });
    if (is_implied) continue;
    op.waits.push_back(wanted);
    operations[static_cast<std::size_t>(wanted)].is_awaited = true;
  }
  std::sort(op.waits.begin(), op.waits.end());
  for (const int wait : op.waits) raise(clock, end(wait));
  clocks_.push_back(clock);
  last_of_stream_[stream_of(op)] = number;
}

}  // namespace troupe::model

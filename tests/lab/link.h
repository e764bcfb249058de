#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// What one direction of a link does to packets. Shares are of packets, in [0, 1].
struct LinkFaults {
  double loss = 0, duplicate = 0;
  double reorder = 0;  ///< this share waits `reorder_by` longer, so that later ones overtake it
  std::chrono::microseconds delay{0}, jitter{0};  ///< each packet waits delay + [0, jitter), in order
  std::chrono::microseconds reorder_by{20'000};
  std::int64_t bytes_per_second = 0;  ///< 0: no limit; what waits longer than `queue` for its turn is dropped
  std::chrono::milliseconds queue{1'000};
  bool cut = false;
};

/// How often a link did what.
struct LinkCounts {
  std::int64_t offered = 0, cut = 0, lost = 0, overflowed = 0, duplicated = 0, reordered = 0;
};

/// One direction between two ports. What becomes of its n-th packet is a function of seed, link and n, so that a seed
/// repeats as far as the packets do. No clock of its own; not thread-safe.
class Link {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Link(std::uint64_t seed, std::uint64_t link) : seed_(seed), link_(link) {}

  LinkFaults faults;
  /// When each copy of a packet of `bytes` that arrives now leaves: none for a lost one, two for a doubled one.
  std::vector<Time> departures(Time now, std::size_t bytes);
  const LinkCounts& counts() const { return counts_; }

 private:
  const std::uint64_t seed_, link_;
  std::uint64_t packets_ = 0;
  Time last_{}, free_at_{};
  LinkCounts counts_;
};

}  // namespace troupe::testing

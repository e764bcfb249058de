#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace troupe::bench {

/// What one phase of a measurement asks for.
struct PingPlan {
  int warm_up = 0;  ///< round trips that do not count
  int pings = 0;    ///< round trips that do
  /// When a phase that has not ended is given up: generous, for a loaded machine.
  std::chrono::milliseconds deadline() const {
    return std::chrono::seconds(10) + std::chrono::milliseconds(10) * (warm_up + pings);
  }
};

/// Round-trip times of one phase, in microseconds, in the order of the pings.
using RoundTrips = std::vector<double>;

/// The smallest value that at least `share` of all values do not exceed.
inline double percentile(const RoundTrips& sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted.at(static_cast<std::size_t>(std::max(place, 1.0)) - 1);
}

/// Payload bytes of a ping and of its answer.
struct PayloadBytes {
  std::size_t ping = 0, answer = 0;
};

/// A server process ends itself after this time, with code 1.
inline constexpr std::chrono::minutes kServerLifetime{30};

}  // namespace troupe::bench

#pragma once

#include <chrono>
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

/// Payload bytes of a ping and of its answer.
struct PayloadBytes {
  std::size_t ping = 0, answer = 0;
};

/// An echo process that nobody ended by then ends itself, with code 1.
inline constexpr std::chrono::minutes kEchoLifetime{30};

}  // namespace troupe::bench

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/collective.h"

namespace troupe::comm {

/// How a backend makes the ranks of one group inside one process. `join` is called on each rank's own thread.
struct CollectiveBackend {
  std::string name;
  std::function<std::function<std::unique_ptr<Collective>(int rank)>(int world, std::chrono::milliseconds timeout)>
      make_group;
};
inline std::ostream& operator<<(std::ostream& out, const CollectiveBackend& backend) { return out << backend.name; }

/// What every backend promises (comm/collective/collective.h), run over each of them.
class CollectiveConformanceTest : public ::testing::TestWithParam<CollectiveBackend> {
 protected:
  /// Runs `body` as every rank of a fresh group, each on its own thread.
  void run_ranks(int world, const std::function<void(Collective&)>& body,
                 std::chrono::milliseconds timeout = std::chrono::milliseconds(20'000)) {
    const auto join = GetParam().make_group(world, timeout);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        const auto collective = join(rank);
        ASSERT_NE(collective, nullptr);
        body(*collective);
      });
    }
    for (auto& thread : threads) thread.join();
  }
};

inline std::span<std::byte> bytes(std::vector<float>& data) { return std::as_writable_bytes(std::span(data)); }

/// A value that depends on everything, with enough digits that the order of a sum shows in its last bits.
inline float noisy(int rank, int round, std::size_t i) {
  return static_cast<float>(std::sin(1.0 + rank * 7.7 + round * 1.3 + static_cast<double>(i) * 0.37) *
                            (rank % 2 ? 1e3 : 1e-3));
}

}  // namespace troupe::comm

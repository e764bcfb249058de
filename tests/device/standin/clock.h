#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::device::standin {

/// Which operation: the how-manieth of which stream, both from 1.
struct Stamp {
  std::uint32_t stream = 0, number = 0;
};

/// What has happened before a point: of each stream, up to which of its operations. Source: F. Mattern, "Virtual Time
/// and Global States of Distributed Systems", 1989.
class VectorClock {
 public:
  bool has_seen(Stamp stamp) const { return stamp.stream < seen_.size() && seen_[stamp.stream] >= stamp.number; }
  void see(Stamp stamp) {
    if (stamp.stream >= seen_.size()) seen_.resize(stamp.stream + 1);
    seen_[stamp.stream] = std::max(seen_[stamp.stream], stamp.number);
  }
  void join(const VectorClock& other) {
    seen_.resize(std::max(seen_.size(), other.seen_.size()));
    for (std::size_t i = 0; i < other.seen_.size(); ++i) seen_[i] = std::max(seen_[i], other.seen_[i]);
  }

 private:
  std::vector<std::uint32_t> seen_;
};

}  // namespace troupe::device::standin

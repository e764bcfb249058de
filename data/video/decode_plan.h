#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/video/packet_table.h"

namespace troupe::data {

/// Samples [first, last] in decode order, fed one after the other; `first` is a key sample.
struct DecodeRun {
  std::int32_t first = 0, last = 0;
  bool operator==(const DecodeRun&) const = default;
};

/// The key sample from which presentation index `rank` can be decoded: the last one at or before it in decode order
/// that is not shown after it (frames that lead an open group need the key before).
/// Returns its place in the table's samples. Requires 0 <= rank < frames shown.
std::int32_t governing_key(const PacketTable& table, std::int64_t rank);

/// Fewest runs that reach every wanted frame: from its governing key to itself, joined where one run continues
/// another, cut where a whole key interval would be fed for nothing. `frames` are presentation indices
/// inside the table.
std::vector<DecodeRun> plan_runs(const PacketTable& table, std::span<const std::int64_t> frames);

/// Places in the table's samples that the runs feed, in order. Left out are frames that are shown before the key they
/// follow, because they refer to a group that is not fed (at the start of a file only those of H.264), and, where the
/// table proves one reference, all that is neither key nor wanted.
std::vector<std::int32_t> feed_order(const PacketTable& table, std::span<const DecodeRun> runs,
                                     std::span<const std::int64_t> frames);

}  // namespace troupe::data

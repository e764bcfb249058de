#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::data {

/// How GEAR's loader picks and groups rows where Troupe does not: for comparing a dataset's samples with a GEAR run.
/// Source: GEAR's DreamZero loaders (sharded and plain LeRobot datasets). All functions are pure.

/// Whether GEAR lists row `anchor` of an episode of `length` rows as an anchor before it looks at its window; `reach`
/// is its largest delta index.
bool gear_lists_anchor(std::int64_t anchor, std::int64_t length, std::int64_t reach);

/// The row that GEAR's datasets without blocks read for a step outside [0, length): the nearest one for absolute keys,
/// none (zeros) for relative ones.
std::optional<std::int64_t> gear_padded_row(std::int64_t step, std::int64_t length, bool relative);

/// Places of the episodes of each of GEAR's shards: cuts evenly spaced over all rows, one for each `rows_per_shard`
/// begun; an episode is appended whole, and a shard ends once the rows so far are beyond its cut. The last shards may
/// be empty. Requires rows_per_shard >= 1.
std::vector<std::vector<std::size_t>> gear_shards(std::span<const std::int64_t> lengths, std::int64_t rows_per_shard);

}  // namespace troupe::data

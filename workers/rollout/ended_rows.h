#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe::workers {

/// The rows of an item whose episodes ended and whose environments were not lost, numbered in order of (policy step,
/// row): number i has the item's i-th final pictures (TrajectoryViewOf::final_image). One pass over the item makes it;
/// it does not refer to the item afterwards.
class EndedRows {
 public:
  explicit EndedRows(ConstTrajectoryView item);

  std::int64_t count() const { return count_; }
  /// -1: no episode ended there.
  std::int32_t number(std::int64_t call, std::int64_t row) const {
    return numbers_[static_cast<std::size_t>(call * rows_ + row)];
  }

 private:
  std::int64_t rows_ = 1;
  std::vector<std::int32_t> numbers_;
  std::int64_t count_ = 0;
};

/// Rows that ended in the item's first `calls` policy steps: the number of the next one.
std::int64_t count_ended_rows(ConstTrajectoryView item, std::int64_t calls);

/// Of an item that is complete: fixed_bytes and the pictures of the rows that ended.
std::int64_t item_bytes(ConstTrajectoryView item);

/// Whether bytes that came from elsewhere are one item of the layout, no more and no less. Errors: data_loss with both
/// sizes.
Result<void> check_item_bytes(const TrajectoryLayout& layout, std::span<const std::byte> item);

}  // namespace troupe::workers

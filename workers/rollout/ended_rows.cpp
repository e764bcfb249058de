#include "workers/rollout/ended_rows.h"

#include <fmt/format.h>

namespace troupe::workers {

namespace {

bool has_ended(ConstTrajectoryView item, std::int64_t call, std::int64_t row) {
  const auto index = static_cast<std::size_t>(row);
  return item.done(call)[index] != 0 && item.lost(call)[index] == 0;
}

}  // namespace

EndedRows::EndedRows(ConstTrajectoryView item) : rows_(item.layout().rows) {
  for (std::int64_t call = 0; call < item.layout().calls; ++call) {
    for (std::int64_t row = 0; row < rows_; ++row)
      numbers_.push_back(has_ended(item, call, row) ? static_cast<std::int32_t>(count_++) : -1);
  }
}

std::int64_t count_ended_rows(ConstTrajectoryView item, std::int64_t calls) {
  std::int64_t count = 0;
  for (std::int64_t call = 0; call < calls; ++call) {
    for (std::int64_t row = 0; row < item.layout().rows; ++row) count += has_ended(item, call, row) ? 1 : 0;
  }
  return count;
}

std::int64_t item_bytes(ConstTrajectoryView item) {
  const TrajectoryLayout& layout = item.layout();
  if (layout.final_images.empty()) return layout.fixed_bytes;
  return layout.fixed_bytes + count_ended_rows(item, layout.calls) * layout.final_image_bytes;
}

Result<void> check_item_bytes(const TrajectoryLayout& layout, std::span<const std::byte> item) {
  const auto found = static_cast<std::int64_t>(item.size());
  if (found < layout.fixed_bytes) {
    return Error{Errc::data_loss, fmt::format("{} bytes; the job's have {} at least", found, layout.fixed_bytes)};
  }
  const std::int64_t wanted = item_bytes({layout, item.data()});
  if (found == wanted) return {};
  return Error{Errc::data_loss, fmt::format("{} bytes; the job's with as many ended episodes have {}", found, wanted)};
}

}  // namespace troupe::workers

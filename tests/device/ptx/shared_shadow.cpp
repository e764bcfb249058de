#include "tests/device/ptx/shared_shadow.h"

#include <algorithm>

namespace troupe::device::ptx {

void SharedShadow::start(std::uint32_t bytes, std::uint32_t granule) {
  const std::uint32_t last = *std::max_element(std::begin(now_), std::end(now_));
  const std::size_t count = (bytes >> granule) + 1;
  // records of earlier blocks are older than `base_` and count for nothing, so that cells need no clearing
  base_ = last + 1;
  if (granule != granule_ || count > cells_.size() || base_ > 0x80000000) {
    cells_.assign(std::max(count, cells_.size()), {});
    granule_ = granule;
    base_ = 1;
  }
  for (int i = 0; i < kLanes; ++i) {
    now_[i] = base_;
    all_known_[i] = base_ - 1;
    std::fill(std::begin(known_[i]), std::end(known_[i]), base_ - 1);
    lanes_known_[i].clear();
  }
}

void SharedShadow::synchronise(std::uint32_t warp, std::uint32_t lanes, bool all) {
  if (all) {
    all_known_[warp] = now_[warp]++;
    return;
  }
  auto& known = lanes_known_[warp];
  if (known.empty()) known.assign(std::size_t{kLanes} * kLanes, 0);
  for (std::uint32_t of = 0; of < kLanes; ++of) {
    std::uint32_t latest = (lanes >> of & 1) != 0 ? now_[warp] : 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) latest = std::max(latest, known[lane * kLanes + of]);
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) known[lane * kLanes + of] = latest;
    }
  }
  ++now_[warp];
}

void SharedShadow::synchronise_warps(std::uint32_t warps) {
  std::uint32_t latest[kLanes] = {};
  for (std::uint32_t w = 0; w < kLanes; ++w) {
    if ((warps >> w & 1) == 0) continue;
    for (std::uint32_t of = 0; of < kLanes; ++of) latest[of] = std::max(latest[of], known_[w][of]);
    latest[w] = std::max(latest[w], now_[w]);
  }
  for (std::uint32_t w = 0; w < kLanes; ++w) {
    if ((warps >> w & 1) == 0) continue;
    std::copy(std::begin(latest), std::end(latest), std::begin(known_[w]));
    all_known_[w] = now_[w]++;
  }
}

}  // namespace troupe::device::ptx

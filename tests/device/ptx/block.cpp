#include "tests/device/ptx/block.h"

#include <fmt/format.h>

#include <bit>

namespace troupe::device::ptx {
namespace {

/// Stream of the draws of one block (base/random.h).
constexpr std::uint64_t kStream = 0x707478;

bool reduces(const Op& op) { return op.a >= static_cast<std::uint32_t>(BarrierKind::popc); }

}  // namespace

Block::Block(LaunchState& launch, std::uint32_t num_warps) : launch_(launch) {
  state_.launch = &launch;
  state_.shared_bytes = launch.kernel->dynamic_shared + launch.shape.shared_bytes;
  if (launch.shape.shared_bytes == 0) state_.shared_bytes = launch.kernel->shared_bytes;
  state_.shared.resize(state_.shared_bytes + 16);
  for (std::uint32_t i = 0; i < num_warps; ++i) {
    warps_.push_back(std::make_unique<Warp>(*launch.kernel, state_, i));
    warps_.back()->state().constants = launch.kernel->constants.data();
  }
}

void Block::start(std::uint32_t number) {
  const Dim3& grid = launch_.shape.grid;
  state_.number = number;
  state_.index = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
  state_.shadow.start(state_.shared_bytes, launch_.kernel->shared_granule);
  std::fill(state_.shared.begin(), state_.shared.end(), std::byte{0});
  std::fill(std::begin(barriers_), std::end(barriers_), Barrier{});
  random_ = CounterRng(launch_.options.seed, kStream, number);
  // some blocks change warps often, some rarely
  constexpr std::uint32_t kSlices[] = {2, 16, 128, 1024};
  slice_ = kSlices[random_.below(4)];
  ready_.clear();
  for (std::uint32_t i = 0; i < warps_.size(); ++i) {
    warps_[i]->start();
    ready_.push_back(i);
  }
}

bool Block::step() {
  if (ready_.empty()) {
    std::uint32_t waiting = 0;
    for (const auto& warp : warps_) waiting += warp->status() == Warp::Status::at_barrier;
    if (waiting > 0) report_hang();
    return false;
  }
  const std::uint32_t chosen = random_.below(static_cast<std::uint32_t>(ready_.size()));
  const std::uint32_t index = ready_[chosen];
  const Warp::Status status = warps_[index]->run(1 + random_.below(slice_), random_);
  if (status == Warp::Status::stopped) return false;
  if (status == Warp::Status::ready) return true;
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  if (status == Warp::Status::at_barrier) arrive(index);
  complete_barriers();
  return true;
}

void Block::arrive(std::uint32_t index) {
  Warp& warp = *warps_[index];
  const Op& op = warp.barrier();
  WarpState& lanes = warp.state();
  lanes.active = lanes.live;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes.live));
  const std::uint32_t number = lanes.values<std::uint32_t>(op.refs[1])[first] % 16;
  Barrier& barrier = barriers_[number];
  if (barrier.first_op == kNone) barrier.first_op = op.index;
  barrier.threads = op.b != 0 ? lanes.values<std::uint32_t>(op.refs[2])[first] : 0;
  if (barrier.threads == 0 && barrier.first_op != op.index) {
    lanes.report(FindingKind::divergent_barrier, op, lanes.live,
                 fmt::format("other warps wait at another place for barrier {}", number));
  }
  barrier.arrived |= 1U << index;
  if (reduces(op)) {
    const std::uint32_t p = *lanes.values<std::uint32_t>(op.refs[3]) ^ (op.c != 0 ? kAllLanes : 0);
    barrier.count += static_cast<std::uint32_t>(std::popcount(p & lanes.live));
    barrier.total += static_cast<std::uint32_t>(std::popcount(lanes.live));
  }
  if (op.a == static_cast<std::uint32_t>(BarrierKind::arrive)) {
    warp.pass_barrier();
    ready_.push_back(index);
  } else {
    barrier.waiting |= 1U << index;
  }
}

void Block::complete_barriers() {
  std::uint32_t live = 0;
  for (std::uint32_t i = 0; i < warps_.size(); ++i) live |= warps_[i]->state().live != 0 ? 1U << i : 0U;
  for (Barrier& barrier : barriers_) {
    if (barrier.arrived == 0) continue;
    const bool is_complete =
        barrier.threads == 0 ? (live & ~barrier.arrived) == 0
                             : static_cast<std::uint32_t>(std::popcount(barrier.arrived)) * kLanes >= barrier.threads;
    if (is_complete) complete(barrier);
  }
}

void Block::complete(Barrier& barrier) {
  state_.shadow.synchronise_warps(barrier.arrived);
  for (std::uint32_t i = 0; i < warps_.size(); ++i) {
    if ((barrier.waiting >> i & 1) == 0) continue;
    Warp& warp = *warps_[i];
    WarpState& lanes = warp.state();
    const Op& op = warp.barrier();
    if (reduces(op)) {
      lanes.active = lanes.live;
      const auto kind = static_cast<BarrierKind>(op.a);
      if (kind == BarrierKind::popc) {
        std::uint32_t result[kLanes];
        for (auto& r : result) r = barrier.count;
        lanes.store(op.refs[0], result);
      } else {
        const bool holds = kind == BarrierKind::all ? barrier.count == barrier.total : barrier.count > 0;
        lanes.store_mask(op.refs[0], holds ? kAllLanes : 0);
      }
    }
    warp.pass_barrier();
    ready_.push_back(i);
  }
  barrier = {};
}

void Block::report_hang() {
  for (std::uint32_t number = 0; number < std::size(barriers_); ++number) {
    const Barrier& barrier = barriers_[number];
    if (barrier.waiting == 0) continue;
    Warp& warp = *warps_[static_cast<std::size_t>(std::countr_zero(barrier.waiting))];
    warp.state().report(FindingKind::hang, warp.barrier(), warp.state().live,
                        fmt::format("barrier {} waits for {} threads, {} warps are there", number, barrier.threads,
                                    std::popcount(barrier.arrived)));
  }
}

}  // namespace troupe::device::ptx

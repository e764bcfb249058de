#include "tests/device/ptx/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace troupe::device::ptx {
namespace {

std::byte* aligned(std::byte* at) {
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(at) + kHeader - 1) / kHeader * kHeader);
}

}  // namespace

Warp::Warp(const Kernel& kernel, BlockState& block, std::uint32_t index) : kernel_(kernel) {
  registers_.resize(kernel.register_bytes + kHeader);
  local_.resize(std::size_t{kernel.local_bytes} * kLanes);
  local_written_.resize(local_.size());
  state_.registers = aligned(registers_.data());
  state_.local = local_.data();
  state_.local_written = local_written_.data();
  state_.block = &block;
  state_.index = index;
}

void Warp::start() {
  const BlockState& block = *state_.block;
  const LaunchShape& shape = block.launch->shape;
  const Dim3& size = shape.block;
  const std::uint32_t threads = size[0] * size[1] * size[2], first = state_.index * kLanes;
  state_.live = threads - first >= kLanes ? kAllLanes : (1U << (threads - first)) - 1;
  state_.exists = state_.live;
  state_.pending.clear();
  std::fill(std::begin(state_.groups), std::end(state_.groups), 0);
  for (const std::uint32_t header : kernel_.register_headers) {
    *reinterpret_cast<std::uint32_t*>(state_.registers + header) = 0;
  }
  std::fill(local_written_.begin(), local_written_.end(), std::uint8_t{0});
  state_.active = kAllLanes;
  for (const auto& [special, ref] : kernel_.specials) {
    std::uint32_t values[kLanes];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t thread = first + lane, bit = 1U << lane;
      const std::uint32_t all[] = {thread % size[0],
                                   thread / size[0] % size[1],
                                   thread / size[0] / size[1],
                                   size[0],
                                   size[1],
                                   size[2],
                                   block.index[0],
                                   block.index[1],
                                   block.index[2],
                                   shape.grid[0],
                                   shape.grid[1],
                                   shape.grid[2],
                                   lane,
                                   state_.index,
                                   (threads + kLanes - 1) / kLanes,
                                   bit,
                                   bit | (bit - 1),
                                   bit - 1,
                                   ~(bit - 1),
                                   ~(bit | (bit - 1)),
                                   shape.shared_bytes,
                                   block.shared_bytes};
      values[lane] = all[static_cast<std::size_t>(special)];
    }
    state_.store(ref, values);
  }
  fragments_.assign(1, {.lanes = state_.live, .pc = 0});
  joins_.clear();
  steps_ = 0;
  status_ = Status::ready;
}

Warp::Status Warp::run(std::uint32_t steps, CounterRng& random) {
  if (status_ != Status::ready) return status_;
  std::uint32_t ready = 0;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (fragments_[i].waits) continue;
    ++ready;
    if (ready == 1 || random.below(ready) == 0) chosen = i;  // each with equal chance
  }
  if (ready > 0) {
    run_fragment(chosen, steps, random);
  } else if (!fragments_.empty() || state_.live != 0) {
    untangle();
  }
  if (status_ == Status::ready && state_.live == 0) status_ = Status::done;
  if (status_ == Status::ready && all_at_barrier()) status_ = Status::at_barrier;
  return status_;
}

void Warp::run_fragment(std::size_t at, std::uint32_t steps, CounterRng& random) {
  steps_ += steps;
  const std::uint32_t lanes = fragments_[at].lanes;
  if (steps_ > state_.block->launch->options.most_steps) {
    state_.report(FindingKind::hang, kernel_.code[fragments_[at].pc], lanes,
                  fmt::format("still runs after {} instructions", steps_));
    status_ = Status::stopped;
    return;
  }
  while (steps-- > 0 && step(at, random)) {
  }
}

/// One instruction; false when this fragment is not at this place any more, waits or has changed.
bool Warp::step(std::size_t at, CounterRng& random) {
  Fragment& fragment = fragments_[at];
  const Op& op = kernel_.code[fragment.pc];
  std::uint32_t active = fragment.lanes;
  if (op.guard != kNone) {
    state_.active = active;
    state_.require_written(op, Ref{op.guard});
    const std::uint32_t guard = *state_.values<std::uint32_t>(Ref{op.guard});
    active &= op.guard_negated ? ~guard : guard;
  }
  state_.active = active;
  ++state_.stamp;
  Counts& counts = state_.block->launch->counts[op.index];
  ++counts.warps;
  counts.lanes += static_cast<std::uint32_t>(std::popcount(active));
  const std::uint32_t next = fragment.pc + 1;
  if (op.flow == Flow::plain) {
    if (active != 0) op.run(state_, op);
    return move_to(at, next);
  }
  if (op.flow == Flow::branch) {
    if (active == fragment.lanes) return move_to(at, op.target);
    if (active == 0) return move_to(at, next);
    part(at, active, op.target, next, op.join, random);
    return false;
  }
  if (active == 0) return move_to(at, next);
  if (active != fragment.lanes) {
    // those whose guard is false go on, and the others are looked at again by themselves
    const bool leaves = op.flow == Flow::ret || op.flow == Flow::exit;
    part(at, active, fragment.pc, next, leaves ? kNone : next, random);
    return false;
  }
  switch (op.flow) {
    case Flow::indexed_branch:
      indexed_branch(at, op, random);
      return false;
    case Flow::call:
      fragment.join = add_join(fragment, next);
      fragment.returns.push_back(next);
      return move_to(at, op.target);
    case Flow::ret:
      if (!fragment.returns.empty()) {
        const std::uint32_t to = fragment.returns.back();
        fragment.returns.pop_back();
        return move_to(at, to);
      }
      [[fallthrough]];
    case Flow::exit:
      if (op.a == 1) {
        op.run(state_, op);
        status_ = Status::stopped;
      }
      remove(at);
      leave(active);
      return false;
    case Flow::rendezvous:
    case Flow::barrier:
      fragment.waits = true;
      if (op.flow == Flow::rendezvous) rendezvous(fragment.pc, false);
      return false;
    default:
      TROUPE_CHECK(false, "every flow has its case");
  }
}

bool Warp::move_to(std::size_t at, std::uint32_t pc) {
  Fragment& fragment = fragments_[at];
  fragment.pc = pc;
  if (fragment.join < 0 || joins_[static_cast<std::size_t>(fragment.join)].pc != pc) return true;
  return park(at);
}

std::int32_t Warp::add_join(const Fragment& fragment, std::uint32_t pc) {
  if (pc == kNone) return fragment.join;
  if (fragment.join >= 0 && joins_[static_cast<std::size_t>(fragment.join)].pc == pc) return fragment.join;
  // places of joins that are over are used again
  std::size_t at = 0;
  while (at < joins_.size() && joins_[at].expected != 0) ++at;
  if (at == joins_.size()) joins_.emplace_back();
  joins_[at] = {
      .pc = pc, .expected = fragment.lanes, .arrived = 0, .parent = fragment.join, .returns = fragment.returns};
  return static_cast<std::int32_t>(at);
}

void Warp::part(std::size_t at, std::uint32_t taken, std::uint32_t target, std::uint32_t next, std::uint32_t join,
                CounterRng& random) {
  Fragment one = fragments_[at];
  one.join = add_join(one, join);
  Fragment two = one;
  one.lanes = taken;
  one.pc = target;
  two.lanes &= ~taken;
  two.pc = next;
  if (random.below(2) == 0) std::swap(one, two);
  fragments_[at] = std::move(one);
  fragments_.push_back(std::move(two));
  // an arm may be empty
  const std::size_t last = fragments_.size() - 1;
  move_to(last, fragments_[last].pc);
  move_to(at, fragments_[at].pc);
}

void Warp::indexed_branch(std::size_t at, const Op& op, CounterRng& random) {
  state_.require_written(op, op.refs[0]);
  const auto* index = state_.values<std::uint32_t>(op.refs[0]);
  const auto& table = kernel_.branch_tables[op.target];
  Fragment whole = fragments_[at];
  whole.join = add_join(whole, op.join);
  remove(at);
  for (std::uint32_t rest = whole.lanes; rest != 0;) {
    const std::uint32_t first = index[std::countr_zero(rest)];
    Fragment arm = whole;
    arm.lanes = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) arm.lanes |= index[lane] == first ? rest & 1U << lane : 0;
    rest &= ~arm.lanes;
    arm.pc = table[std::min<std::size_t>(first, table.size() - 1)];
    fragments_.push_back(std::move(arm));
    move_to(fragments_.size() - 1, fragments_.back().pc);
  }
  (void)random;
}

void Warp::remove(std::size_t at) {
  if (at + 1 != fragments_.size()) fragments_[at] = std::move(fragments_.back());
  fragments_.pop_back();
}

/// The fragment has come to its join; always false, its place is another's now.
bool Warp::park(std::size_t at) {
  const std::int32_t index = fragments_[at].join;
  Join& join = joins_[static_cast<std::size_t>(index)];
  join.arrived |= fragments_[at].lanes;
  remove(at);
  complete(index);
  return false;
}

/// If all lanes of the join are there, they go on together.
void Warp::complete(std::int32_t index) {
  Join& join = joins_[static_cast<std::size_t>(index)];
  if (join.expected == 0 || join.arrived != join.expected) return;
  fragments_.push_back({.lanes = join.arrived, .pc = join.pc, .join = join.parent, .returns = std::move(join.returns)});
  join = {};
  move_to(fragments_.size() - 1, fragments_.back().pc);
}

/// Lanes end; joins, barriers and masks stop waiting for them.
void Warp::leave(std::uint32_t lanes) {
  state_.live &= ~lanes;
  for (std::size_t i = 0; i < joins_.size(); ++i) {
    if ((joins_[i].expected & lanes) == 0) continue;
    joins_[i].expected &= ~lanes;
    complete(static_cast<std::int32_t>(i));
  }
  std::vector<std::uint32_t> places;
  for (const Fragment& fragment : fragments_) {
    if (fragment.waits && kernel_.code[fragment.pc].flow == Flow::rendezvous) places.push_back(fragment.pc);
  }
  for (const std::uint32_t pc : places) rendezvous(pc, false);
}

/// Runs the instruction at `pc` for all groups of waiting lanes whose masks are complete, or with `force` for all that
/// wait. True if some went on.
bool Warp::rendezvous(std::uint32_t pc, bool force) {
  const Op& op = kernel_.code[pc];
  std::uint32_t waiting = 0, done = 0;
  for (const Fragment& fragment : fragments_) waiting |= fragment.waits && fragment.pc == pc ? fragment.lanes : 0;
  const bool is_whole = op.target == kAllLanesMask;
  const auto* masks = is_whole ? nullptr : state_.values<std::uint32_t>(op.refs[kMaskRef]);
  for (std::uint32_t rest = waiting; rest != 0;) {
    const std::uint32_t mask = is_whole ? kAllLanes : masks[std::countr_zero(rest)];
    std::uint32_t group = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      group |= is_whole || masks[lane] == mask ? rest & 1U << lane : 0;
    }
    rest &= ~group;
    const std::uint32_t missing = mask & state_.live & ~group;
    if (missing != 0 && !force) continue;
    if (missing != 0) {
      state_.report(
          FindingKind::missing_lane, op, missing,
          fmt::format("the mask {:#010x} names threads that never arrive at {}", mask, kernel_.mnemonics[pc]));
    }
    if ((group & ~mask) != 0) {
      state_.report(FindingKind::missing_lane, op, group & ~mask, fmt::format("not in its own mask {:#010x}", mask));
    }
    state_.active = group;
    if (!is_whole) state_.require_written(op, op.refs[kMaskRef]);
    op.run(state_, op);
    state_.block->shadow.synchronise(state_.index, group, group == state_.live);
    done |= group;
  }
  if (done == 0) return false;
  std::vector<Fragment> moved;
  for (std::size_t i = fragments_.size(); i-- > 0;) {
    Fragment& fragment = fragments_[i];
    if (!fragment.waits || fragment.pc != pc || (fragment.lanes & done) == 0) continue;
    Fragment released = fragment;
    released.lanes &= done;
    released.waits = false;
    fragment.lanes &= ~done;
    moved.push_back(std::move(released));
    if (fragment.lanes == 0) remove(i);
  }
  for (Fragment& released : moved) fragments_.push_back(std::move(released));
  merge();
  for (std::size_t i = fragments_.size(); i-- > 0;) {
    if (!fragments_[i].waits && fragments_[i].pc == pc) move_to(i, pc + 1);
  }
  return true;
}

/// Fragments at the same place that have the same way before them become one.
void Warp::merge() {
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    for (std::size_t k = fragments_.size(); --k > i;) {
      Fragment &one = fragments_[i], &two = fragments_[k];
      if (one.pc != two.pc || one.join != two.join || one.waits != two.waits || one.returns != two.returns) continue;
      one.lanes |= two.lanes;
      remove(k);
    }
  }
}

bool Warp::all_at_barrier() {
  std::uint32_t waiting = 0;
  const Op* op = nullptr;
  for (const Fragment& fragment : fragments_) {
    const Op& at = kernel_.code[fragment.pc];
    if (!fragment.waits || at.flow != Flow::barrier || (op != nullptr && op != &at)) return false;
    op = &at;
    waiting |= fragment.lanes;
  }
  if (op == nullptr || waiting != state_.live) return false;
  barrier_ = op;
  return true;
}

void Warp::pass_barrier() {
  for (Fragment& fragment : fragments_) fragment.waits = false;
  merge();
  const std::uint32_t pc = barrier_->index;
  for (std::size_t i = fragments_.size(); i-- > 0;) {
    if (fragments_[i].pc == pc) move_to(i, pc + 1);
  }
  status_ = Status::ready;
}

/// No lane can go on. Barriers in parted code and masks that name lanes behind the branch are findings; then lanes
/// leave their joins, as independent threads may; then all that wait go on as they are.
void Warp::untangle() {
  const Fragment* at_barrier = nullptr;
  for (const Fragment& fragment : fragments_) {
    if (kernel_.code[fragment.pc].flow == Flow::barrier) at_barrier = &fragment;
  }
  if (at_barrier != nullptr) {
    state_.report(FindingKind::divergent_barrier, kernel_.code[at_barrier->pc], at_barrier->lanes,
                  "only some of the warp's threads are at this barrier");
  }
  std::uint32_t parked = 0;
  for (const Join& join : joins_) parked |= join.expected != 0 ? join.arrived : 0;
  for (const Fragment& fragment : fragments_) {
    const Op& op = kernel_.code[fragment.pc];
    if (op.flow != Flow::rendezvous) continue;
    const std::uint32_t mask = op.target == kAllLanesMask
                                   ? kAllLanes
                                   : state_.values<std::uint32_t>(op.refs[kMaskRef])[std::countr_zero(fragment.lanes)];
    if ((mask & parked) == 0) continue;
    state_.report(FindingKind::missing_lane, op, mask & parked,
                  fmt::format("the mask {:#010x} names threads that have gone past it", mask));
  }
  if (break_join()) return;
  for (const Fragment& fragment : fragments_) {
    if (kernel_.code[fragment.pc].flow == Flow::rendezvous && rendezvous(fragment.pc, true)) return;
  }
  status_ = Status::stopped;
}

/// The lanes of a join that are there leave it; false when there are none.
bool Warp::break_join() {
  for (std::size_t i = joins_.size(); i-- > 0;) {
    Join& join = joins_[i];
    if (join.expected == 0 || join.arrived == 0) continue;
    fragments_.push_back({.lanes = join.arrived, .pc = join.pc, .join = join.parent, .returns = join.returns});
    join.expected &= ~join.arrived;
    join.arrived = 0;
    move_to(fragments_.size() - 1, fragments_.back().pc);
    return true;
  }
  return false;
}

}  // namespace troupe::device::ptx

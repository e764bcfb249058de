#include "comm/collective/thread_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/collective/combine.h"

namespace troupe::comm {

using Phase = ThreadOperation::Phase;

Result<ThreadGroup::Op> ThreadGroup::post(int rank, std::uint64_t sequence, CollectiveOp kind,
                                          const ThreadBuffers& buffers) {
  Lock lock(mutex_);
  if (aborted_) return Error{Errc::aborted, fmt::format("{} #{}: {}", enum_name(kind), sequence, *aborted_)};
  Op& slot = open_[sequence];
  if (!slot) {
    slot = std::make_shared<ThreadOperation>();
    slot->kind = kind;
    slot->sequence = sequence;
    slot->bytes = buffers.bytes;
    slot->root = buffers.root;
    slot->parts.resize(static_cast<std::size_t>(world_));
  }
  const Op op = slot;
  if (op->kind != kind || op->bytes != buffers.bytes || op->root != buffers.root) {
    Error error(
        Errc::internal,
        fmt::format("operation #{} is {} of {} bytes on rank {} but {} of {} bytes on a peer; all ranks must issue the "
                    "same operations in the same order",
                    sequence, enum_name(kind), buffers.bytes, rank, enum_name(op->kind), op->bytes));
    abort_locked(error.message());
    return error;
  }
  auto& part = op->parts[static_cast<std::size_t>(rank)];
  part.in = buffers.in;
  part.out = buffers.out;
  part.phase = Phase::posted;
  if (++op->posted == world_) changed_.notify_all();
  return op;
}

void ThreadGroup::run_part(Lock& lock, const Op& op, int rank) {
  auto& part = op->parts[static_cast<std::size_t>(rank)];
  part.phase = Phase::running;
  ++op->running;
  lock.unlock();
  compute(*op, rank);
  lock.lock();
  part.phase = Phase::finished;
  --op->running;
  if (++op->finished == world_) open_.erase(op->sequence);
  if (op->finished == world_ || aborted_) changed_.notify_all();
}

Result<void> ThreadGroup::wait(const Op& op, int rank, Clock::time_point deadline) {
  Lock lock(mutex_);
  auto& part = op->parts[static_cast<std::size_t>(rank)];
  const auto is_over = [&] { return op->finished == world_ || (is_dead(*op) && op->running == 0); };
  for (;;) {
    const bool woken = changed_.wait_until(
        lock, deadline, [&] { return is_over() || (is_ready(*op) && part.phase == Phase::posted && !is_dead(*op)); });
    if (op->finished == world_) break;
    if (is_over()) return abort_error(*op);
    if (woken) {
      run_part(lock, op, rank);
      continue;
    }
    // a copy under way is bounded by memory speed: let it end, so that no buffer is touched after this returns
    Error error(Errc::deadline_exceeded,
                fmt::format("{} #{} did not finish within {} ms on rank {} of {}: {}", enum_name(op->kind),
                            op->sequence, timeout_.count(), rank, world_, missing(*op)));
    abort_locked(error.message());
    changed_.wait(lock, [&] { return op->running == 0; });
    return error;
  }
  if (!part.result.empty()) std::memcpy(part.out, part.result.data(), op->bytes);
  return {};
}

void ThreadGroup::compute(ThreadOperation& op, int rank) const {
  auto& own = op.parts[static_cast<std::size_t>(rank)];
  if (op.bytes == 0) return;
  std::vector<const double*> inputs;
  switch (op.kind) {
    case CollectiveOp::all_gather:
      for (std::size_t r = 0; r < op.parts.size(); ++r) {
        std::byte* const target = own.out + r * op.bytes;
        if (target != op.parts[r].in) std::memcpy(target, op.parts[r].in, op.bytes);
      }
      return;
    case CollectiveOp::all_to_all:
      for (std::size_t r = 0; r < op.parts.size(); ++r) {
        std::memcpy(own.out + r * op.bytes, op.parts[r].in + static_cast<std::size_t>(rank) * op.bytes, op.bytes);
      }
      return;
    case CollectiveOp::all_reduce_sum:
    case CollectiveOp::all_reduce_max:
      for (const auto& part : op.parts) inputs.push_back(reinterpret_cast<const double*>(part.in));
      own.result.resize(op.bytes / sizeof(double));
      return (op.kind == CollectiveOp::all_reduce_sum ? sum_in_rank_order : max_over_ranks)(own.result, inputs);
    case CollectiveOp::broadcast:
      if (rank != op.root) std::memcpy(own.out, op.parts[static_cast<std::size_t>(op.root)].in, op.bytes);
      return;
    case CollectiveOp::barrier:
      return;
  }
}

void ThreadGroup::abort(const std::string& why) {
  const Lock lock(mutex_);
  abort_locked(why);
}

void ThreadGroup::abort_locked(std::string why) {
  if (!aborted_) aborted_ = std::move(why);
  for (const auto& [key, part] : parts_) part->abort(*aborted_);
  changed_.notify_all();
}

std::shared_ptr<ThreadGroup> ThreadGroup::part(std::uint64_t sequence, int colour, int world) {
  const Lock lock(mutex_);
  auto& part = parts_[{sequence, colour}];
  if (!part) part = std::make_shared<ThreadGroup>(world, timeout_);
  if (aborted_) part->abort(*aborted_);
  return part;
}

void ThreadGroup::leave(int rank) {
  Lock lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = true;
  bool pending = false;
  for (const auto& [sequence, op] : open_) {
    const auto phase = op->parts[static_cast<std::size_t>(rank)].phase;
    pending =
        pending || (phase == Phase::posted || phase == Phase::running || (phase == Phase::finished && !is_dead(*op)));
  }
  if (pending) abort_locked(fmt::format("rank {} left the group with operations under way", rank));
  changed_.notify_all();
  changed_.wait(lock, [&] {
    return std::all_of(open_.begin(), open_.end(), [](const auto& item) { return item.second->running == 0; });
  });
}

Error ThreadGroup::abort_error(const ThreadOperation& op) const {
  const auto why = aborted_ ? *aborted_ : fmt::format("rank {} left the group", lost_rank(op).value_or(-1));
  return {Errc::aborted, fmt::format("{} #{}: {}", enum_name(op.kind), op.sequence, why)};
}

std::optional<int> ThreadGroup::lost_rank(const ThreadOperation& op) const {
  for (int r = 0; r < world_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (left_[i] && op.parts[i].phase == Phase::absent) return r;
  }
  return std::nullopt;
}

std::string ThreadGroup::missing(const ThreadOperation& op) const {
  std::string ranks;
  for (std::size_t r = 0; r < op.parts.size(); ++r) {
    if (op.parts[r].phase == Phase::absent) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", r);
  }
  return ranks.empty() ? "every rank came, but not all have finished" : fmt::format("waiting for rank {}", ranks);
}

}  // namespace troupe::comm

#include "comm/collective/thread_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/collective/rank_sum.h"

namespace troupe::comm {

using Phase = ThreadOperation::Phase;

Result<ThreadGroup::Op> ThreadGroup::post(int rank, std::uint64_t sequence, CollectiveOp kind, Buffer in, Buffer out,
                                          int root) {
  Lock lock(mutex_);
  if (aborted_) return Error{Errc::aborted, fmt::format("{} #{}: {}", enum_name(kind), sequence, *aborted_)};
  Op& slot = open_[sequence];
  const std::int64_t count = kind == CollectiveOp::reduce_scatter ? out.count : in.count;
  if (!slot) {
    slot = std::make_shared<ThreadOperation>();
    slot->kind = kind;
    slot->sequence = sequence;
    slot->count = count;
    slot->dtype = in.dtype;
    slot->root = root;
    slot->parts.resize(static_cast<std::size_t>(world_));
  }
  const Op op = slot;
  if (op->kind != kind || op->count != count || op->dtype != in.dtype || op->root != root) {
    Error error(
        Errc::internal,
        fmt::format(
            "operation #{} is {} of {} elements on rank {} but {} of {} elements on a peer; all ranks must issue "
            "the same operations in the same order",
            sequence, enum_name(kind), count, rank, enum_name(op->kind), op->count));
    abort_locked(error.message());
    return error;
  }
  auto& part = op->parts[static_cast<std::size_t>(rank)];
  part.in = in;
  part.out = out;
  part.phase = Phase::posted;
  if (++op->posted == world_) changed_.notify_all();
  return op;
}

bool ThreadGroup::run_when_ready(const Op& op, int rank, const bool& stop) {
  Lock lock(mutex_);
  auto& part = op->parts[static_cast<std::size_t>(rank)];
  // no deadline here: this is an idle thread of the group; the operation's deadline is kept by wait()
  changed_.wait(lock, [&] { return stop || part.phase != Phase::posted || is_ready(*op) || is_dead(*op); });
  if (stop || part.phase != Phase::posted || is_dead(*op)) return false;
  run_part(lock, op, rank);
  return true;
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
  if (!part.result.empty()) {
    std::memcpy(part.out.data, part.result.data(), part.result.size());
    part.result.clear();
  }
  return {};
}

bool ThreadGroup::is_done(const Op& op) const {
  Lock lock(mutex_);
  return op->finished == world_ || (is_dead(*op) && op->running == 0);
}

void ThreadGroup::compute(ThreadOperation& op, int rank) const {
  auto& own = op.parts[static_cast<std::size_t>(rank)];
  const std::size_t bytes = static_cast<std::size_t>(op.count) * size_of(op.dtype);
  if (bytes == 0) return;
  std::vector<const void*> inputs;
  switch (op.kind) {
    case CollectiveOp::all_gather:
      for (std::size_t r = 0; r < op.parts.size(); ++r) {
        auto* target = static_cast<std::byte*>(own.out.data) + r * bytes;
        if (target != op.parts[r].in.data) std::memcpy(target, op.parts[r].in.data, bytes);
      }
      return;
    case CollectiveOp::reduce_scatter:
      for (const auto& part : op.parts) {
        inputs.push_back(static_cast<const std::byte*>(part.in.data) + static_cast<std::size_t>(rank) * bytes);
      }
      return sum_in_rank_order(op.dtype, own.out.data, inputs, op.count);
    case CollectiveOp::all_reduce_sum:
    case CollectiveOp::all_reduce_max:
      for (const auto& part : op.parts) inputs.push_back(part.in.data);
      own.result.resize(bytes);
      if (op.kind == CollectiveOp::all_reduce_sum)
        return sum_in_rank_order(op.dtype, own.result.data(), inputs, op.count);
      return max_in_rank_order(op.dtype, own.result.data(), inputs, op.count);
    case CollectiveOp::broadcast:
      if (rank != op.root) std::memcpy(own.out.data, op.parts[static_cast<std::size_t>(op.root)].in.data, bytes);
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
  changed_.notify_all();
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

void ThreadGroup::set_stop(bool& stop) {
  const Lock lock(mutex_);
  stop = true;
  changed_.notify_all();
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

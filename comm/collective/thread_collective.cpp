#include <fmt/format.h>

#include <deque>
#include <thread>

#include "comm/collective/thread_group.h"

namespace troupe::comm {
namespace {

using Clock = ThreadGroup::Clock;

class FailedCollective final : public PendingCollective {
 public:
  explicit FailedCollective(Error error) : error_(std::move(error)) {}
  Result<void> wait() override { return error_; }
  bool is_done() const override { return true; }

 private:
  Error error_;
};

class ThreadPending final : public PendingCollective {
 public:
  ThreadPending(std::shared_ptr<ThreadGroup> group, ThreadGroup::Op op, int rank)
      : group_(std::move(group)), op_(std::move(op)), rank_(rank), deadline_(Clock::now() + group_->timeout()) {}
  Result<void> wait() override { return group_->wait(op_, rank_, deadline_); }
  bool is_done() const override { return group_->is_done(op_); }

 private:
  std::shared_ptr<ThreadGroup> group_;
  ThreadGroup::Op op_;
  int rank_;
  Clock::time_point deadline_;
};

/// Runs a rank's asynchronous parts in the order they were issued, so that they overlap the rank's computation.
class Copier {
 public:
  Copier(ThreadGroup& group, int rank) : group_(group), rank_(rank), thread_([this] { run(); }) {}
  ~Copier() {
    group_.set_stop(stop_);
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    queued_.notify_one();
    thread_.join();
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void push(ThreadGroup::Op op) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(op));
    }
    queued_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      queued_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      const auto op = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      group_.run_when_ready(op, rank_, stop_);
    }
  }

  ThreadGroup& group_;
  const int rank_;
  bool stop_ = false;  // guarded by the group's mutex
  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<ThreadGroup::Op> queue_;
  bool closed_ = false;
  std::thread thread_;
};

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {
    // alone, every operation runs when it is issued
    if (group_->world() > 1) copier_ = std::make_unique<Copier>(*group_, rank_);
  }
  ~ThreadCollective() override {
    copier_.reset();
    group_->leave(rank_);
  }

  int rank() const noexcept override { return rank_; }
  int world() const noexcept override { return group_->world(); }
  std::string backend() const override { return "thread"; }

  std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) override {
    if (auto bad = check_sharded(full, shard, "all_gather")) return bad;
    return start(CollectiveOp::all_gather, shard, full);
  }
  std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) override {
    if (auto bad = check_sharded(full, shard, "reduce_scatter")) return bad;
    return start(CollectiveOp::reduce_scatter, full, shard);
  }
  Result<void> all_reduce_sum(Buffer buffer) override { return run(CollectiveOp::all_reduce_sum, buffer, 0); }
  Result<void> all_reduce_max(Buffer buffer) override { return run(CollectiveOp::all_reduce_max, buffer, 0); }
  Result<void> broadcast(Buffer buffer, int root) override {
    if (root < 0 || root >= world()) {
      return Error{Errc::invalid_argument, fmt::format("broadcast from rank {}; the group has {}", root, world())};
    }
    return run(CollectiveOp::broadcast, buffer, root);
  }
  Result<void> barrier() override { return run(CollectiveOp::barrier, Buffer{}, 0); }
  void abort(const std::string& why) override { group_->abort(fmt::format("rank {} aborted: {}", rank_, why)); }

 private:
  std::unique_ptr<PendingCollective> check_sharded(const Buffer& full, const Buffer& shard, std::string_view op) const {
    if (full.dtype == shard.dtype && full.count == shard.count * world()) return nullptr;
    return std::make_unique<FailedCollective>(Error{
        Errc::invalid_argument, fmt::format("{}: the full buffer has {} elements, wants {} ranks x {} of one dtype", op,
                                            full.count, world(), shard.count)});
  }

  std::unique_ptr<PendingCollective> start(CollectiveOp kind, Buffer in, Buffer out) {
    auto op = group_->post(rank_, sequence_++, kind, in, out, 0);
    if (!op) return std::make_unique<FailedCollective>(op.error());
    if (copier_)
      copier_->push(*op);
    else
      group_->run_when_ready(*op, rank_, false);
    return std::make_unique<ThreadPending>(group_, *op, rank_);
  }

  Result<void> run(CollectiveOp kind, Buffer buffer, int root) {
    TROUPE_ASSIGN(auto op, group_->post(rank_, sequence_++, kind, buffer, buffer, root));
    return group_->wait(op, rank_, Clock::now() + group_->timeout());
  }

  std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  std::uint64_t sequence_ = 0;
  std::unique_ptr<Copier> copier_;
};

}  // namespace

std::shared_ptr<ThreadGroup> make_thread_group(int world, std::chrono::milliseconds timeout) {
  TROUPE_CHECK(world >= 1, "a group has at least one rank");
  return std::make_shared<ThreadGroup>(world, timeout);
}

std::unique_ptr<Collective> join_thread_group(std::shared_ptr<ThreadGroup> group, int rank) {
  TROUPE_CHECK(group && rank >= 0 && rank < group->world(), "the rank belongs to the group");
  return std::make_unique<ThreadCollective>(std::move(group), rank);
}

}  // namespace troupe::comm

#include <fmt/format.h>

#include "comm/collective/colour_group.h"
#include "comm/collective/shares.h"
#include "comm/collective/thread_group.h"

namespace troupe::comm {
namespace {

using Clock = ThreadGroup::Clock;

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~ThreadCollective() override { group_->leave(rank_); }

  int rank() const noexcept override { return rank_; }
  int world() const noexcept override { return group_->world(); }
  std::string backend() const override { return "thread"; }

  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    TROUPE_TRY(check_all_gather(full, shard, world()));
    return run(CollectiveOp::all_gather, {shard.data(), full.data(), shard.size()});
  }
  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    TROUPE_TRY(check_all_to_all(received, sent, world()));
    return run(CollectiveOp::all_to_all, {sent.data(), received.data(), sent.size() / ranks()});
  }
  Result<void> all_reduce_sum(std::span<double> values) override {
    return run(CollectiveOp::all_reduce_sum, whole(std::as_writable_bytes(values)));
  }
  Result<void> all_reduce_max(std::span<double> values) override {
    return run(CollectiveOp::all_reduce_max, whole(std::as_writable_bytes(values)));
  }
  Result<void> broadcast(std::span<std::byte> bytes, int root) override {
    if (root < 0 || root >= world()) {
      return Error{Errc::invalid_argument, fmt::format("broadcast from rank {}; the group has {}", root, world())};
    }
    return run(CollectiveOp::broadcast, whole(bytes, root));
  }
  Result<void> barrier() override { return run(CollectiveOp::barrier, {}); }
  Result<std::unique_ptr<Collective>> split(int colour) override {
    const std::uint64_t sequence = sequence_;
    TROUPE_ASSIGN(const ColourGroup mine, find_colour_group(*this, colour));
    return join_thread_group(group_->part(sequence, colour, mine.world), mine.rank);
  }
  void abort(const std::string& why) override { group_->abort(fmt::format("rank {} aborted: {}", rank_, why)); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(world()); }
  static ThreadBuffers whole(std::span<std::byte> bytes, int root = 0) {
    return {bytes.data(), bytes.data(), bytes.size(), root};
  }

  Result<void> run(CollectiveOp kind, const ThreadBuffers& buffers) {
    TROUPE_ASSIGN(const auto op, group_->post(rank_, sequence_++, kind, buffers));
    return group_->wait(op, rank_, Clock::now() + group_->timeout());
  }

  std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  std::uint64_t sequence_ = 0;
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

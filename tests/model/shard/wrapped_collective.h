#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "comm/collective/collective.h"

namespace troupe::model {

/// Forwards to another collective; the base of the scripted ones below.
class WrappedCollective : public Collective {
 public:
  explicit WrappedCollective(std::unique_ptr<Collective> inner) : inner_(std::move(inner)) {}
  int rank() const noexcept override { return inner_->rank(); }
  int world() const noexcept override { return inner_->world(); }
  std::string backend() const override { return inner_->backend(); }
  std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) override {
    return inner_->all_gather(full, shard);
  }
  std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) override {
    return inner_->reduce_scatter(shard, full);
  }
  Result<void> all_reduce_sum(Buffer buffer) override { return inner_->all_reduce_sum(buffer); }
  Result<void> all_reduce_max(Buffer buffer) override { return inner_->all_reduce_max(buffer); }
  Result<void> broadcast(Buffer buffer, int root) override { return inner_->broadcast(buffer, root); }
  Result<void> barrier() override { return inner_->barrier(); }
  void abort(const std::string& why) override { inner_->abort(why); }

 protected:
  std::unique_ptr<Collective> inner_;
};

/// Does each operation either at once, when it is issued, or as late as allowed, in its wait(), with NaN in the output
/// until then: the two ends of what a real network may do. `late` decides per operation and must decide alike on all
/// ranks.
class AdversarialCollective final : public WrappedCollective {
 public:
  AdversarialCollective(std::unique_ptr<Collective> inner, std::function<bool(int operation)> late)
      : WrappedCollective(std::move(inner)), late_(std::move(late)) {}

  std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) override {
    poison(full);
    return schedule([this, full, shard] { return inner_->all_gather(full, shard)->wait(); });
  }
  std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) override {
    const auto* begin = static_cast<float*>(full.data);
    const auto* target = static_cast<float*>(shard.data);
    if (target < begin || target >= begin + full.count) poison(shard);
    return schedule([this, shard, full] { return inner_->reduce_scatter(shard, full)->wait(); });
  }

 private:
  class Deferred final : public PendingCollective {
   public:
    explicit Deferred(std::function<Result<void>()> work) : work_(std::move(work)) {}
    Result<void> wait() override { return work_ ? std::exchange(work_, nullptr)() : Result<void>(); }
    bool is_done() const override { return !work_; }

   private:
    std::function<Result<void>()> work_;
  };

  static void poison(const Buffer& buffer) {
    if (buffer.dtype != DType::f32) return;
    std::fill_n(static_cast<float*>(buffer.data), buffer.count, std::numeric_limits<float>::quiet_NaN());
  }
  std::unique_ptr<PendingCollective> schedule(std::function<Result<void>()> work) {
    if (late_(operation_++)) return std::make_unique<Deferred>(std::move(work));
    const auto result = work();
    return std::make_unique<Deferred>([result] { return result; });
  }

  std::function<bool(int)> late_;
  int operation_ = 0;
};

/// Aborts the group in place of this rank's operation number `at`.
class AbortingCollective final : public WrappedCollective {
 public:
  AbortingCollective(std::unique_ptr<Collective> inner, int at) : WrappedCollective(std::move(inner)), at_(at) {}
  std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) override {
    strike();
    return inner_->all_gather(full, shard);
  }
  std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) override {
    strike();
    return inner_->reduce_scatter(shard, full);
  }
  Result<void> all_reduce_sum(Buffer buffer) override {
    strike();
    return inner_->all_reduce_sum(buffer);
  }

 private:
  void strike() {
    if (operation_++ == at_) inner_->abort("scripted");
  }
  const int at_;
  int operation_ = 0;
};

}  // namespace troupe::model

#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "comm/collective/collective.h"

namespace troupe::comm {

/// Forwards to another collective of the host; for those that change some of it.
class WrappedCollective : public Collective {
 public:
  explicit WrappedCollective(std::unique_ptr<Collective> inner) : inner_(std::move(inner)) {}
  int rank() const noexcept override { return inner_->rank(); }
  int world() const noexcept override { return inner_->world(); }
  std::string backend() const override { return inner_->backend(); }
  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    return inner_->all_gather(full, shard);
  }
  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    return inner_->all_to_all(received, sent);
  }
  Result<void> all_reduce_sum(std::span<double> values) override { return inner_->all_reduce_sum(values); }
  Result<void> all_reduce_max(std::span<double> values) override { return inner_->all_reduce_max(values); }
  Result<void> broadcast(std::span<std::byte> bytes, int root) override { return inner_->broadcast(bytes, root); }
  Result<void> barrier() override { return inner_->barrier(); }
  Result<std::unique_ptr<Collective>> split(int colour) override { return inner_->split(colour); }
  void abort(const std::string& why) override { inner_->abort(why); }

 protected:
  std::unique_ptr<Collective> inner_;
};

/// Aborts the group in place of this rank's operation number `at`.
class AbortingCollective final : public WrappedCollective {
 public:
  AbortingCollective(std::unique_ptr<Collective> inner, int at) : WrappedCollective(std::move(inner)), at_(at) {}
  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    strike();
    return inner_->all_gather(full, shard);
  }
  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    strike();
    return inner_->all_to_all(received, sent);
  }
  Result<void> all_reduce_sum(std::span<double> values) override {
    strike();
    return inner_->all_reduce_sum(values);
  }

 private:
  void strike() {
    if (operation_++ == at_) inner_->abort("scripted");
  }
  const int at_;
  int operation_ = 0;
};

}  // namespace troupe::comm

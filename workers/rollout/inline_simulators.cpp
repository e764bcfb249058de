#include "workers/rollout/inline_simulators.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/fault.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

InlineSimulators::InlineSimulators(Options options)
    : options_(std::move(options)),
      // the caller steps too
      executor_(Executor::make({.threads = options_.threads > 1 ? options_.threads : 0})),
      memory_(static_cast<std::size_t>(options_.slots * options_.layout.bytes) / sizeof(Line)),
      actions_(static_cast<std::size_t>(options_.slots)) {
  for (std::int64_t slot = options_.slots; slot-- > 0;) free_.push_back(static_cast<std::uint32_t>(slot));
}

InlineSimulators::~InlineSimulators() = default;

Result<void> check_inline(const EnvFactory& factory) {
  if (!factory.waits_for_others()) return {};
  return Error{Errc::failed_precondition,
               fmt::format("cluster.isolation.env is inline, and {} is stepped by Python's workers, for whom a rollout "
                           "worker would stand still; say process or thread",
                           factory.spec().id)};
}

std::byte* InlineSimulators::slot(std::uint32_t index) {
  return reinterpret_cast<std::byte*>(memory_.data()) + index * options_.layout.bytes;
}

Result<std::uint32_t> InlineSimulators::ask(const std::string& simulator, const Credit& credit,
                                            const BlockRequest& request) {
  TROUPE_CHECK(simulator == kName, "a rollout worker that steps its blocks itself has one simulator");
  Request asked{credit, request};
  if (credit.slot == kAnySlot) {
    if (free_.empty()) return Error{Errc::resource_exhausted, "no slot is free"};
    asked.credit.slot = free_.back();
    free_.pop_back();
  }
  const std::uint32_t slot = asked.credit.slot;
  std::vector<float>& actions = actions_[slot];
  actions.assign(request.actions.begin(), request.actions.end());
  asked.request.actions = actions;
  asked_.push_back(asked);
  return slot;
}

Result<void> InlineSimulators::begin(const Request& asked) {
  const BlockRequest& request = asked.request;
  Held& held = blocks_[request.block];
  if (held.name.empty()) held.name = fmt::format("{} block {}", options_.owner, request.block);
  TROUPE_TRY(fault_point("simulator.step", held.name));
  if (request.kind == BlockRequest::Kind::release) {
    blocks_.erase(request.block);
    return {};
  }
  auto& block = held.block;
  if (!block && request.kind == BlockRequest::Kind::step) {
    return Error{Errc::failed_precondition, fmt::format("block {} was not begun here", request.block)};
  }
  if (!block) {
    TROUPE_ASSIGN(block, options_.make_block(request.block, *executor_));
  }
  const BlockView out{&options_.layout, slot(asked.credit.slot)};
  under_way_.fetch_add(1, std::memory_order_relaxed);
  auto done = [this] {
    if (under_way_.fetch_sub(1, std::memory_order_acq_rel) == 1) under_way_.notify_all();
  };
  if (request.kind == BlockRequest::Kind::reset) {
    block->reset(request.episode, out, done);
  } else {
    counted_.push_back({block.get(), block->counters()});
    block->step(request.actions, out, done, Executor::Caller::helps);
  }
  return {};
}

std::span<const Item> InlineSimulators::step() {
  answers_.clear();
  for (const Request& asked : asked_) {
    if (auto begun = begin(asked); begun) {
      answers_.push_back({.credit = asked.credit, .bytes = static_cast<std::uint64_t>(options_.layout.bytes)});
    } else {
      answers_.push_back(make_item(asked.credit, {}, begun.error()));
    }
  }
  asked_.clear();
  const auto is_done = [this] { return under_way_.load(std::memory_order_acquire) == 0; };
  while (!is_done()) {
    executor_->help(is_done);
    // the last rows may still be in the hands of others
    if (const std::int64_t left = under_way_.load(std::memory_order_acquire); left != 0) under_way_.wait(left);
  }
  for (const Counted& counted : counted_) stepped_ += counted.block->counters() - counted.before;
  counted_.clear();
  return answers_;
}

}  // namespace troupe::workers

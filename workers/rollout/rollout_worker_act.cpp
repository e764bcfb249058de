// The half of RolloutWorker that asks the policy.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "workers/rollout/ended_rows.h"
#include "workers/rollout/rollout_block.h"
#include "workers/rollout/rollout_worker.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

BlockView RolloutWorker::view_of(const Block& block) const { return writer_.block(simulators_.slot(block.slot)); }

const StateScale& RolloutWorker::scale_of(const PublishedWeightsPtr& weights) {
  if (scaled_ != weights) {
    scaled_ = weights;
    scale_ = job_.rollout.normalize_obs
                 ? StateScale(weights->normaliser.observed, job_.rollout.clip_obs, observation_parts(spec_).normalised)
                 : StateScale();
  }
  return scale_;
}

RolloutWorker::Clock::time_point RolloutWorker::run(Clock::time_point now) {
  // Weights of an older group never come again: what waits for them goes back to its feed, which may have no slot to
  // say so with.
  if (const std::uint64_t fence = effects_.newest_fence(); fence > fence_) supersede(fence);
  // Blocks that could not go on, for want of weights, of a simulator or of a slot.
  due_.assign(waiting_weights_.begin(), waiting_weights_.end());
  for (const std::int64_t index : due_) {
    const Open& open = *blocks_.at(index).open;
    if (!effects_.weights(open.order.credit.fence, open.order.request)) continue;
    waiting_weights_.erase(index);
    batcher_.add(index, now);
  }
  due_.assign(unplaced_.begin(), unplaced_.end());
  for (const std::int64_t index : due_) {
    Block& block = blocks_.at(index);
    const bool may_deal = deal_.num_owners() > 0 && most_simulators_ >= options_.await_simulators;
    if (may_deal && (block.slot != kAnySlot || simulators_.free_slots() > 0)) begin_anew(index, block, now);
  }
  for (;;) {
    batcher_.take(now, num_asked_ > 0, due_);
    if (due_.empty()) break;
    answer_blocks(due_, now);
  }
  report_stuck(now);
  const bool is_starved = !waiting_weights_.empty() && num_asked_ == 0;
  if (is_starved && !starved_since_) starved_since_ = now;
  if (!is_starved && starved_since_) {
    stats_.wait_weights_seconds += Seconds(now - *starved_since_).count();
    starved_since_.reset();
  }
  return std::min(batcher_.due(), next_stuck_check_);
}

bool RolloutWorker::observe(std::int64_t index, Block& block) {
  Open& open = *block.open;
  // The observation after the last step is judged by the weights that acted last.
  if (open.call < layout_.calls || !open.weights) {
    auto weights = effects_.weights(open.order.credit.fence, open.order.request);
    if (!weights) {
      waiting_weights_.insert(index);
      return false;
    }
    open.weights = std::move(weights);
  }
  const StateScale& scale = scale_of(open.weights);
  const BlockView from = view_of(block);
  const ScopedSeconds recording(stats_.record_seconds);
  writer_.observe(open.item, open.call, from, scale, block.history);
  block.finals.rows.clear();
  if (open.call > 0) writer_.finals(open.item, open.call - 1, from, scale, block.history, block.finals);
  return true;
}

void RolloutWorker::answer_blocks(std::span<const std::int64_t> blocks, Clock::time_point now) {
  // One call of the policy per set of weights; usually there is one.
  std::vector<std::pair<PublishedWeightsPtr, std::vector<PolicyCaller::Call>>> groups;
  std::vector<std::int64_t> observed;
  for (const std::int64_t index : blocks) {
    Block& block = blocks_.at(index);
    if (!observe(index, block)) continue;
    observed.push_back(index);
    const Open& open = *block.open;
    if (open.call == layout_.calls) continue;
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == open.weights; });
    if (group == groups.end()) group = groups.insert(groups.end(), {open.weights, {}});
    if (open.call == 0) block.open->begun_at = now;
    group->second.push_back({open.item, open.call, open.round, index, block.history.memory});
  }
  for (const auto& [weights, calls] : groups) {
    const auto begin = Clock::now();
    const auto acted = [&, &weights = weights, &calls = calls] {
      const Span span("policy call");
      return policy_.act(*weights, calls);
    }();
    const auto took = Clock::now() - begin;
    stats_.policy_seconds += Seconds(took).count();
    ++stats_.policy_calls;
    now += took;  // a simulator's time counts from when it is asked
    for (const auto& call : calls) {
      Block& block = blocks_.at(call.block);
      if (acted) {
        ask(call.block, block, {.kind = BlockRequest::Kind::step, .actions = call.item.action(call.call)}, now);
      } else {
        effects_.report("policy_failed", acted.error().message());
        give_up(call.block, block, acted.error().message());
      }
    }
  }
  // What nobody waits for comes after the actions are on their way.
  for (const std::int64_t index : observed) {
    Block& block = blocks_.at(index);
    if (block.open && block.open->call > 0) value_ends(index, block);
    if (block.open && block.open->call == layout_.calls) finish(index, block, now);
    if (!block.open && !block.is_asked() && !block.orders.empty()) start(index, block, now);
  }
}

void RolloutWorker::value_ends(std::int64_t index, Block& block) {
  Open& open = *block.open;
  const auto begin = Clock::now();
  const Span span("values at the end");
  auto valued = policy_.final_values(*open.weights, {open.item, open.call - 1, open.round, index}, block.finals);
  if (valued && open.call == layout_.calls)
    valued = policy_.value(*open.weights, {open.item, open.call, open.round, index, block.history.memory});
  stats_.policy_seconds += seconds_since(begin);
  if (valued) return;
  effects_.report("policy_failed", valued.error().message());
  give_up(index, block, valued.error().message());
}

void RolloutWorker::finish(std::int64_t index, Block& block, Clock::time_point now) {
  Open& open = *block.open;
  {
    const ScopedSeconds recording(stats_.record_seconds);
    writer_.finish(open.item, view_of(block), block.history);
  }
  const auto bytes = static_cast<std::size_t>(item_bytes(ConstTrajectoryView(layout_, open.item.memory())));
  if (auto sent = open.order.send(make_item(open.order.credit, open.order.memory, bytes)); !sent) {
    log::warn("rollout: position {} could not be delivered: {}", open.order.position, sent.error().message());
  } else {
    ++stats_.items;
    stats_.item_steps += layout_.calls;
    stats_.item_seconds += Seconds(now - open.begun_at).count();
  }
  block.last_round = open.round;
  block.last_fence = open.order.credit.fence;
  close(index, block);
  block.may_continue = carries_;
}

}  // namespace troupe::workers

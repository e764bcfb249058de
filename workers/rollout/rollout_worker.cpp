#include "workers/rollout/rollout_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "env/make_allowance.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/rollout_block.h"

namespace troupe::workers {

namespace {
/// Between two times that a feed is told that an item goes on; small beside any deadline of an item.
constexpr std::chrono::seconds kTellEvery{1};
/// A block that fails so often in a row, wherever it is begun, cannot be simulated.
constexpr std::int64_t kMaxFailures = 3;

/// Tag of a request's credit: the number of the request, so that a late answer is known, and below it the block.
constexpr std::uint64_t request_tag(std::int64_t block, std::int64_t serial) {
  return static_cast<std::uint64_t>(serial) << 32 | static_cast<std::uint64_t>(block);
}
constexpr std::int64_t block_of_tag(std::uint64_t tag) { return static_cast<std::int64_t>(tag & 0xFFFF'FFFF); }

PolicyShape shape_of(const EnvSpec& spec, const JobConfig& job) {
  auto shape = policy_shape_of(spec, job.env, job.policy);
  TROUPE_CHECK(shape.has_value(), "the policy was made from this specification");
  return std::move(*shape);
}
}  // namespace

RolloutWorker::RolloutWorker(const JobConfig& job, const EnvSpec& spec, std::shared_ptr<const PolicyNet> net,
                             Simulators& simulators, Options options, Effects effects)
    : job_(job),
      spec_(spec),
      rl_(rl_shape(job)),
      layout_(make_trajectory_layout(job, spec, *net)),
      writer_(job_, spec_, layout_),
      policy_(job_, shape_of(spec_, job_), std::move(net), layout_),
      simulators_(simulators),
      options_(options),
      effects_(std::move(effects)),
      carries_(job.env.reset_mode == "auto"),
      timeout_(to_milliseconds(job.env.step_timeout)),
      batcher_(job.rollout.batch_blocks, std::chrono::duration_cast<std::chrono::nanoseconds>(job.rollout.max_wait)) {
  TROUPE_CHECK(simulators_.num_slots() >= rl_.blocks, "a rollout worker has a slot for every block");
}

RolloutWorker::~RolloutWorker() = default;

void RolloutWorker::simulator_joined(const std::string& simulator, Clock::time_point) {
  deal_.add(simulator);
  most_simulators_ = std::max(most_simulators_, static_cast<std::int64_t>(deal_.num_owners()));
}

void RolloutWorker::simulator_gone(const std::string& simulator, Clock::time_point now) {
  deal_.remove(simulator);
  for (auto& [index, block] : blocks_) {
    if (block.simulator == simulator) lose(index, block, now);
  }
}

void RolloutWorker::lose(std::int64_t index, Block& block, Clock::time_point now) {
  if (block.is_asked()) {
    // The slot is free since the simulator was dropped, or a late answer brings it back.
    block.slot = kAnySlot;
    --num_asked_;
  }
  block.state = Block::State::bare;
  block.simulator.clear();
  block.may_continue = false;
  batcher_.remove(index);
  waiting_weights_.erase(index);
  if (!block.open) {
    // it answered for an item that is given up already, and others may be waiting for it
    if (!block.orders.empty()) start(index, block, now);
    return;
  }
  give_up_attempt(block);
  begin_anew(index, block, now);
}

void RolloutWorker::give_up_attempt(Block& block) {
  const std::int64_t transitions = block.open->call * layout_.envs();
  block.given_up += transitions;
  stats_.given_up += transitions;
}

void RolloutWorker::ordered(TrajectoryOrder order, Clock::time_point now) {
  if (order.credit.fence > fence_) supersede(order.credit.fence);
  const std::int64_t position = order.position;
  if (order.credit.fence < fence_) return refuse(order, "a newer group of learners has formed");
  if (order.memory.size() < static_cast<std::size_t>(layout_.bytes)) {
    return refuse(order, fmt::format("an order for position {} in {} bytes; a trajectory has {}", position,
                                     order.memory.size(), layout_.bytes));
  }
  const std::int64_t index = position % rl_.blocks;
  Block& block = blocks_[index];
  if (block.history.discounted.empty()) block.history = writer_.new_history();
  const auto place = std::find_if(block.orders.begin(), block.orders.end(),
                                  [&](const TrajectoryOrder& other) { return other.position > position; });
  block.orders.insert(place, std::move(order));
  if (!block.open && !block.is_asked()) start(index, block, now);
  release_idle(position / rl_.blocks, now);
}

void RolloutWorker::start(std::int64_t index, Block& block, Clock::time_point now) {
  TrajectoryOrder order = std::move(block.orders.front());
  block.orders.pop_front();
  block.given_up = block.failures = 0;
  const std::int64_t round = order.position / rl_.blocks;
  const TrajectoryView item(layout_, order.memory.data());
  const bool follows = block.last_round + 1 == round && block.last_fence == order.credit.fence;
  const std::string* const wanted = deal_.wanted(index, place_of(index));
  const bool stays = wanted != nullptr && *wanted == block.simulator && block.state == Block::State::resting;
  block.open = Open{.order = std::move(order), .item = item, .round = round, .call = 0, .weights = {}};
  if (!block.may_continue || !follows || !stays) return begin_anew(index, block, now);
  {
    const ScopedSeconds recording(stats_.record_seconds);
    writer_.begin(item, round, index, /*continues=*/true, block.history);
  }
  batcher_.add(index, now);
}

void RolloutWorker::begin_anew(std::int64_t index, Block& block, Clock::time_point now) {
  Open& open = *block.open;
  open.call = 0;
  open.weights.reset();
  block.may_continue = false;
  {
    const ScopedSeconds recording(stats_.record_seconds);
    writer_.begin(open.item, open.round, index, /*continues=*/false, block.history);
  }
  open.item.head().given_up = block.given_up;
  unplaced_.erase(index);
  const std::string* const wanted =
      most_simulators_ < options_.await_simulators ? nullptr : deal_.deal(index, place_of(index));
  if (wanted == nullptr) {
    unplaced_.insert(index);
    return;
  }
  if (*wanted != block.simulator) {
    const std::string to = *wanted;
    release(index, block, now);
    block.simulator = to;
    block.is_first = true;
  }
  ask(index, block, {.kind = BlockRequest::Kind::reset, .episode = first_episode(open.round)}, now);
}

void RolloutWorker::ask(std::int64_t index, Block& block, BlockRequest request, Clock::time_point now) {
  if (block.slot == kAnySlot && simulators_.free_slots() == 0) {  // releases are under way
    unplaced_.insert(index);
    return;
  }
  request.block = static_cast<std::int32_t>(index);
  request.serial = ++serial_;
  block.asked = request_tag(index, serial_);
  const auto slot = simulators_.ask(block.simulator, {.slot = block.slot, .tag = block.asked}, request);
  if (!slot) {
    // It has left; its exit is confirmed later, but its blocks need not wait: this slot is ours.
    log::warn("rollout: {} takes no request ({})", block.simulator, slot.error().message());
    deal_.remove(block.simulator);
    return lose(index, block, now);
  }
  block.state = Block::State::asked;
  block.slot = *slot;
  block.asked_kind = request.kind;
  block.asked_at = now;
  block.is_reported = false;
  ++num_asked_;
}

void RolloutWorker::release(std::int64_t index, Block& block, Clock::time_point) {
  const std::string simulator = std::move(block.simulator);
  block.simulator.clear();
  block.state = Block::State::bare;
  block.may_continue = false;
  if (simulator.empty() || block.slot == kAnySlot) return;
  const BlockRequest request{
      .kind = BlockRequest::Kind::release, .block = static_cast<std::int32_t>(index), .serial = ++serial_};
  const Credit credit{.slot = block.slot, .tag = request_tag(index, serial_)};
  if (!simulators_.ask(simulator, credit, request)) return;  // gone, and its environments with it
  block.slot = kAnySlot;
}

void RolloutWorker::release_idle(std::int64_t round, Clock::time_point now) {
  for (auto& [index, block] : blocks_) {
    const bool is_idle = !block.open && block.orders.empty() && !block.is_asked() && !block.simulator.empty();
    if (!is_idle || block.last_round + 1 + job_.rollout.staleness >= round) continue;
    release(index, block, now);
    deal_.put_back(index);
  }
}

void RolloutWorker::answered(const Item& item, Clock::time_point now) {
  const std::int64_t index = block_of_tag(item.credit.tag);
  const auto found = blocks_.find(index);
  const bool is_expected = found != blocks_.end() && found->second.is_asked() && found->second.asked == item.credit.tag;
  if (!is_expected) return simulators_.release(item.credit.slot);
  Block& block = found->second;
  --num_asked_;
  block.state = Block::State::resting;
  std::string error = item.error;
  if (error.empty() && item.bytes != static_cast<std::uint64_t>(writer_.block_layout().bytes)) {
    error = fmt::format("an answer of {} bytes; a transition has {}", item.bytes, writer_.block_layout().bytes);
  }
  if (!error.empty()) return failed(index, block, error, now);
  block.is_first = false;
  if (!block.open) {
    if (!block.orders.empty()) start(index, block, now);
    return;
  }
  if (block.asked_kind == BlockRequest::Kind::step) {
    Open& open = *block.open;
    block.failures = 0;
    {
      const ScopedSeconds recording(stats_.record_seconds);
      writer_.transition(open.item, open.call, view_of(block), block.history);
    }
    ++open.call;
    stats_.transitions += layout_.envs();
    tell_feed(open, now);
  }
  batcher_.add(index, now);
}

void RolloutWorker::tell_feed(Open& open, Clock::time_point now) {
  if (now - open.told_at < kTellEvery) return;
  open.told_at = now;
  open.order.progress();
}

void RolloutWorker::went_on(const Credit& credit, Clock::time_point now) {
  const auto found = blocks_.find(block_of_tag(credit.tag));
  if (found == blocks_.end() || !found->second.is_asked() || found->second.asked != credit.tag) return;
  Block& block = found->second;
  block.asked_at = now;
  if (block.open) tell_feed(*block.open, now);
}

void RolloutWorker::failed(std::int64_t index, Block& block, const std::string& error, Clock::time_point now) {
  effects_.report("simulator_failed", fmt::format("block {}: {}", index, error));
  block.may_continue = false;
  if (!block.open) {
    if (!block.orders.empty()) start(index, block, now);
    return;
  }
  give_up_attempt(block);
  if (++block.failures < kMaxFailures) return begin_anew(index, block, now);
  give_up(index, block, fmt::format("block {} failed {} times in a row: {}", index, block.failures, error));
  if (!block.orders.empty()) start(index, block, now);
}

void RolloutWorker::refuse(TrajectoryOrder& order, const std::string& why) {
  // The slot goes back to its feed; a feed that is gone needs none.
  if (auto sent = order.send({.credit = order.credit, .bytes = 0, .xxh3 = 0, .error = why}); !sent) {
    log::debug("rollout: position {} could not be given back: {}", order.position, sent.error().message());
  }
}

void RolloutWorker::give_up(std::int64_t index, Block& block, const std::string& why) {
  if (!block.open) return;
  refuse(block.open->order, why);
  close(index, block);
}

void RolloutWorker::close(std::int64_t index, Block& block) {
  block.open.reset();
  block.may_continue = false;
  batcher_.remove(index);
  waiting_weights_.erase(index);
  unplaced_.erase(index);
}

void RolloutWorker::supersede(std::uint64_t fence) {
  fence_ = fence;
  const std::string why = "a newer group of learners has formed";
  for (auto& [index, block] : blocks_) {
    for (TrajectoryOrder& order : block.orders) refuse(order, why);
    block.orders.clear();
    give_up(index, block, why);
  }
}

void RolloutWorker::feed_gone(const std::string& feed, Clock::time_point now) {
  for (auto& [index, block] : blocks_) {
    std::erase_if(block.orders, [&](const TrajectoryOrder& order) { return order.feed == feed; });
    if (block.open && block.open->order.feed == feed) close(index, block);
    if (!block.open && !block.is_asked() && !block.orders.empty()) start(index, block, now);
  }
}

void RolloutWorker::report_stuck(Clock::time_point now) {
  if (now < next_stuck_check_) return;
  next_stuck_check_ = now + timeout_ / 4;
  std::map<std::string, std::int64_t> oldest;
  for (const auto& [index, block] : blocks_) {
    if (!block.is_asked()) continue;
    const auto [place, is_new] = oldest.try_emplace(block.simulator, index);
    if (!is_new && block.asked < blocks_.at(place->second).asked) place->second = index;
  }
  std::map<std::string, std::uint64_t> under_way;
  for (const auto& [simulator, index] : oldest) {
    Block& block = blocks_.at(index);
    under_way[simulator] = block.asked;
    const auto before = under_way_.find(simulator);
    if (before != under_way_.end() && before->second < block.asked) block.asked_at = now;  // it stood behind that one
    if (block.is_reported) continue;
    const auto allowed =
        timeout_ + (block.is_first ? std::chrono::nanoseconds(kMakeAllowance) : std::chrono::nanoseconds(0));
    if (now - block.asked_at < allowed) continue;
    block.is_reported = true;
    effects_.stuck(block.simulator,
                   fmt::format("block {} has been with {} for {:.1f} s; env.step_timeout_s allows {:.1f}", index,
                               block.simulator, Seconds(now - block.asked_at).count(), Seconds(allowed).count()));
  }
  under_way_ = std::move(under_way);
}

bool RolloutWorker::is_idle() const { return num_asked_ == 0 && batcher_.empty(); }

RolloutWorker::Stats RolloutWorker::stats() const {
  Stats stats = stats_;
  stats.simulators = static_cast<std::int64_t>(deal_.num_owners());
  stats.blocks =
      std::count_if(blocks_.begin(), blocks_.end(), [](const auto& entry) { return !entry.second.simulator.empty(); });
  return stats;
}

}  // namespace troupe::workers

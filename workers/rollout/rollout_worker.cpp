#include "workers/rollout/rollout_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/rollout_block.h"

namespace troupe::workers {

namespace {
/// Environments that are made for the first time load models and compile scenes.
constexpr std::chrono::seconds kMakeAllowance{60};
/// A block that fails so often in a row, wherever it is begun, cannot be simulated.
constexpr std::int64_t kMaxFailures = 3;

PolicyShape shape_of(const EnvSpec& spec, const EnvConfig& env) {
  auto shape = policy_shape_of(spec, env);
  TROUPE_CHECK(shape.has_value(), "the policy was made from this specification");
  return std::move(*shape);
}
}  // namespace

RolloutWorker::RolloutWorker(const JobConfig& job, const EnvSpec& spec, std::shared_ptr<const PolicyNet> net,
                             Options options, Effects effects)
    : job_(job),
      spec_(spec),
      rl_(rl_shape(job)),
      layout_(make_trajectory_layout(job, spec, *net)),
      writer_(job_, spec_, layout_),
      policy_(job_, shape_of(spec_, job_.env), std::move(net), layout_),
      options_(options),
      effects_(std::move(effects)),
      carries_(job.env.reset_mode == "auto"),
      timeout_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(job.env.step_timeout_s))),
      batcher_(job.rollout.batch_blocks, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::duration<double, std::milli>(job.rollout.max_wait_ms))) {
  TROUPE_CHECK(options_.slots >= rl_.blocks, "a rollout worker has a slot for every block");
  for (std::uint32_t slot = options_.slots; slot-- > 0;) free_slots_.push_back(slot);
}

RolloutWorker::~RolloutWorker() = default;

void RolloutWorker::simulator_joined(const std::string& simulator, Clock::time_point) {
  deal_.add(simulator);
  most_simulators_ = std::max(most_simulators_, static_cast<std::int64_t>(deal_.num_owners()));
}

void RolloutWorker::simulator_gone(const std::string& simulator, Clock::time_point now) {
  deal_.remove(simulator);
  for (auto it = releasing_.begin(); it != releasing_.end();) {
    if (it->second != simulator) {
      ++it;
      continue;
    }
    free_slots_.push_back(it->first);
    it = releasing_.erase(it);
  }
  for (auto& [index, block] : blocks_) {
    if (block.simulator == simulator) lose(index, block, now);
  }
}

void RolloutWorker::lose(std::int64_t index, Block& block, Clock::time_point now) {
  if (block.is_asked()) --num_asked_;
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
  const std::int64_t transitions = block.open->call * layout_.rows;
  block.given_up += transitions;
  stats_.given_up += transitions;
}

void RolloutWorker::ordered(TrajectoryOrder order, Clock::time_point now) {
  if (order.credit.fence > fence_) supersede(order.credit.fence);
  const std::int64_t position = order.credit.position;
  if (order.credit.fence < fence_) return refuse(order, "a newer group of learners has formed");
  if (position < 0 || order.memory.size() < static_cast<std::size_t>(layout_.bytes)) {
    return refuse(order, fmt::format("an order for position {} in {} bytes; a trajectory has {}", position,
                                     order.memory.size(), layout_.bytes));
  }
  const std::int64_t index = position % rl_.blocks;
  Block& block = blocks_[index];
  if (block.history.discounted.empty()) block.history = writer_.new_history();
  const auto place = std::find_if(block.orders.begin(), block.orders.end(),
                                  [&](const TrajectoryOrder& other) { return other.credit.position > position; });
  block.orders.insert(place, std::move(order));
  if (!block.open && !block.is_asked()) start(index, block, now);
  release_idle(position / rl_.blocks, now);
}

void RolloutWorker::start(std::int64_t index, Block& block, Clock::time_point now) {
  TrajectoryOrder order = std::move(block.orders.front());
  block.orders.pop_front();
  block.given_up = block.failures = 0;
  const std::int64_t round = order.credit.position / rl_.blocks;
  const TrajectoryView item(layout_, order.memory.data());
  const bool follows = block.last_round + 1 == round && block.last_fence == order.credit.fence;
  const std::string* const wanted = deal_.wanted(index, place_of(index));
  const bool stays = wanted != nullptr && *wanted == block.simulator && block.state == Block::State::resting;
  block.open = Open{.order = std::move(order), .item = item, .round = round, .call = 0, .weights = {}};
  if (!block.may_continue || !follows || !stays) return begin_anew(index, block, now);
  writer_.begin(item, round, index, /*continues=*/true, block.history);
  batcher_.add(index, now);
}

void RolloutWorker::begin_anew(std::int64_t index, Block& block, Clock::time_point now) {
  Open& open = *block.open;
  open.call = 0;
  open.weights.reset();
  block.may_continue = false;
  writer_.begin(open.item, open.round, index, /*continues=*/false, block.history);
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
  ask(index, block, {.kind = BlockRequest::Kind::reset, .episode = first_episode(open.round), .actions = {}}, now);
}

void RolloutWorker::ask(std::int64_t index, Block& block, BlockRequest request, Clock::time_point now) {
  if (!block.slot) {
    if (free_slots_.empty()) {  // releases are under way
      unplaced_.insert(index);
      return;
    }
    block.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  request.block = static_cast<std::int32_t>(index);
  request.serial = ++serial_;
  request_.resize(block_request_bytes(request.actions.size()));
  write_block_request(request, request_);
  std::copy(request.actions.begin(), request.actions.end(), request_actions(request_).begin());
  const Credit credit{.slot = *block.slot, .position = index, .fence = static_cast<std::uint64_t>(serial_)};
  if (auto asked = effects_.ask(block.simulator, credit, request_); !asked) {
    // It has left; its exit is confirmed later, but its blocks need not wait: this slot is ours.
    log::warn("rollout: {} takes no request ({})", block.simulator, asked.error().message());
    deal_.remove(block.simulator);
    return lose(index, block, now);
  }
  block.state = Block::State::asked;
  block.asked = credit;
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
  if (simulator.empty() || !block.slot) return;
  request_.resize(kBlockRequestBytes);
  const auto number = static_cast<std::int32_t>(index);
  write_block_request({.kind = BlockRequest::Kind::release, .block = number, .serial = ++serial_, .actions = {}},
                      request_);
  const Credit credit{.slot = *block.slot, .position = index, .fence = static_cast<std::uint64_t>(serial_)};
  if (!effects_.ask(simulator, credit, request_)) return;  // gone, and its environments with it
  releasing_[*block.slot] = simulator;
  block.slot.reset();
}

void RolloutWorker::release_idle(std::int64_t round, Clock::time_point now) {
  for (auto& [index, block] : blocks_) {
    const bool is_idle = !block.open && block.orders.empty() && !block.is_asked() && !block.simulator.empty();
    if (!is_idle || block.last_round + 1 + job_.rollout.staleness >= round) continue;
    release(index, block, now);
    deal_.put_back(index);
  }
}

void RolloutWorker::answered(const std::string& simulator, const Item& item, Clock::time_point now) {
  if (const auto found = releasing_.find(item.credit.slot); found != releasing_.end() && found->second == simulator) {
    free_slots_.push_back(found->first);
    releasing_.erase(found);
    return;
  }
  const std::int64_t index = item.credit.position;
  const auto found = blocks_.find(index);
  if (found == blocks_.end()) return;
  Block& block = found->second;
  const bool is_expected = block.is_asked() && block.simulator == simulator && block.asked.slot == item.credit.slot &&
                           block.asked.fence == item.credit.fence;
  if (!is_expected) return;
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
    writer_.transition(open.item, open.call, view_of(block), block.history);
    ++open.call;
    stats_.transitions += layout_.rows;
  }
  batcher_.add(index, now);
}

void RolloutWorker::failed(std::int64_t index, Block& block, const std::string& error, Clock::time_point now) {
  effects_.report("simulator_failed", fmt::format("block {}: {}", index, error), block.simulator);
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
    log::debug("rollout: position {} could not be given back: {}", order.credit.position, sent.error().message());
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
  for (auto& [index, block] : blocks_) {
    if (!block.is_asked() || block.is_reported) continue;
    const auto allowed =
        timeout_ + (block.is_first ? std::chrono::nanoseconds(kMakeAllowance) : std::chrono::nanoseconds(0));
    if (now - block.asked_at < allowed) continue;
    block.is_reported = true;
    effects_.report("stuck_producer",
                    fmt::format("block {} has been with {} for {:.1f} s; env.step_timeout_s allows {:.1f}", index,
                                block.simulator, std::chrono::duration<double>(now - block.asked_at).count(),
                                std::chrono::duration<double>(allowed).count()),
                    block.simulator);
  }
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

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "configs/job_config.h"
#include "workers/rollout/block_requests.h"
#include "workers/rollout/policy_caller.h"
#include "workers/rollout/request_batcher.h"
#include "workers/rollout/trajectory_request.h"
#include "workers/rollout/trajectory_writer.h"
#include "workers/stream/fair_deal.h"

namespace troupe {

/// One item that a learner's feed asks for.
struct TrajectoryOrder {
  /// Hands the finished item to the feed that asked. Errors: unavailable (that feed is gone).
  std::function<Result<void>(Item item)> send;
  std::string feed;  ///< address of the feed
  Credit credit;
  TrajectoryRequest request;
  std::span<std::byte> memory;  ///< the credit's slot
};

/// What a rollout worker does, as one state machine: which simulator holds which block, which item each block is in, when the
/// policy is asked. Somebody else owns threads and channels, calls it with what happened and then run(). One thread.
///
/// A block plays its items one after the other. It goes on from item to item (reset mode auto) as long as the next one is of
/// the next round, of the same group, and its simulator stays; else, and in other reset modes, it begins anew with episode
/// first_episode(round). What a lost simulator had is given up and begun anew elsewhere: the same draws, the same seeds.
class RolloutWorker {
 public:
  using Clock = std::chrono::steady_clock;

  /// How it reaches the world.
  struct Effects {
    /// Gives a request to a simulator; the answer comes into the same slot. Errors: not_found (gone).
    std::function<Result<void>(const std::string& simulator, const Credit& credit, std::span<const std::byte> request)>
        ask;
    /// The bytes of an answered slot.
    std::function<std::span<const std::byte>(std::uint32_t slot)> memory;
    std::function<PolicyWeightsPtr(std::uint64_t fence, const TrajectoryRequest& request)> weights;
    /// Group of learners of the newest whole weights; 0 before the first.
    std::function<std::uint64_t()> newest_fence;
    /// Something to tell the controller: kind, sentence, whom it is about.
    std::function<void(const std::string& kind, const std::string& text, const std::string& subject)> report;
  };
  struct Options {
    std::uint32_t slots = 0;            ///< of the simulators' channel; at least one per block
    std::int64_t await_simulators = 0;  ///< no block is dealt before so many have dialled in, once
  };

  RolloutWorker(const JobConfig& job, const EnvSpec& spec, std::shared_ptr<const PolicyNet> net, Options options,
                Effects effects);
  ~RolloutWorker();

  const TrajectoryLayout& layout() const { return layout_; }

  void simulator_joined(const std::string& simulator, Clock::time_point now);
  /// Its exit is confirmed and its slots are free (drop_producer was called).
  void simulator_gone(const std::string& simulator, Clock::time_point now);
  void answered(const std::string& simulator, const Item& item, Clock::time_point now);
  void ordered(TrajectoryOrder order, Clock::time_point now);
  /// The feed is gone: what it asked for is given up.
  void feed_gone(const std::string& feed, Clock::time_point now);
  /// Answers what is due with the weights there are, and says when to call again if nothing happens before.
  Clock::time_point run(Clock::time_point now);

  /// Nothing to do: no item is under way, or all wait for weights.
  bool is_idle() const;

  struct Stats {
    std::int64_t items = 0, transitions = 0, given_up = 0, policy_calls = 0;
    std::int64_t simulators = 0, blocks = 0;
    double policy_seconds = 0;        ///< in the policy
    double wait_weights_seconds = 0;  ///< no block could go on for want of weights
  };
  Stats stats() const;

 private:
  struct Block;
  struct Open;
  // Items
  void start(std::int64_t index, Block& block, Clock::time_point now);
  void begin_anew(std::int64_t index, Block& block, Clock::time_point now);
  void finish(std::int64_t index, Block& block, Clock::time_point now);
  void refuse(TrajectoryOrder& order, const std::string& why);
  void give_up(std::int64_t index, Block& block, const std::string& why);
  void give_up_attempt(Block& block);
  void close(std::int64_t index, Block& block);
  void supersede(std::uint64_t fence);
  // Simulators
  void ask(std::int64_t index, Block& block, BlockRequest request, Clock::time_point now);
  void release(std::int64_t index, Block& block, Clock::time_point now);
  void release_idle(std::int64_t round, Clock::time_point now);
  void lose(std::int64_t index, Block& block, Clock::time_point now);
  void failed(std::int64_t index, Block& block, const std::string& error, Clock::time_point now);
  void report_stuck(Clock::time_point now);
  BlockView view_of(const Block& block) const;
  /// Workers share their simulators: block b prefers the one as far down the list as b is among the blocks.
  double place_of(std::int64_t index) const { return static_cast<double>(index) / static_cast<double>(rl_.blocks); }
  // The policy
  bool observe(std::int64_t index, Block& block);
  void answer_blocks(std::span<const std::int64_t> blocks, Clock::time_point now);
  void value_ends(std::int64_t index, Block& block);
  const StateScale& scale_of(const PolicyWeightsPtr& weights);

  const JobConfig job_;
  const EnvSpec spec_;
  const RlShape rl_;
  const TrajectoryLayout layout_;
  const TrajectoryWriter writer_;
  PolicyCaller policy_;
  const Options options_;
  const Effects effects_;
  const bool carries_;  ///< reset mode auto: episodes go on from item to item
  const std::chrono::nanoseconds timeout_;

  std::map<std::int64_t, Block> blocks_;  ///< those that orders named
  FairDeal deal_;                         ///< of blocks over simulators
  std::int64_t most_simulators_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::map<std::uint32_t, std::string> releasing_;  ///< slots with a release under way, and with whom
  std::int64_t num_asked_ = 0;
  RequestBatcher batcher_;
  std::set<std::int64_t> unplaced_;  ///< blocks with an item, and no simulator or no slot
  std::set<std::int64_t> waiting_weights_;
  std::uint64_t fence_ = 0;  ///< newest group that ordered
  std::int64_t serial_ = 0;
  PolicyWeightsPtr scaled_;  ///< whose scale_ is
  StateScale scale_;
  std::vector<std::byte> request_;
  std::vector<std::int64_t> due_;
  Clock::time_point next_stuck_check_{};
  std::optional<Clock::time_point> starved_since_;
  Stats stats_;
};

}  // namespace troupe

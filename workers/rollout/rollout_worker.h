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
#include "configs/job_config.h"
#include "workers/rollout/block_requests.h"
#include "workers/rollout/policy_caller.h"
#include "workers/rollout/request_batcher.h"
#include "workers/rollout/simulators.h"
#include "workers/rollout/trajectory_request.h"
#include "workers/rollout/trajectory_writer.h"
#include "workers/stream/balanced_assignment.h"

namespace troupe::workers {

/// One item that a learner's feed asks for: a credit of that feed.
struct TrajectoryOrder {
  /// Hands the finished item to the feed that asked. Errors: unavailable (that feed is gone).
  std::function<Result<void>(Item item)> send;
  /// Tells that feed that the item has gone on, so that its deadline counts anew.
  std::function<void()> progress;
  /// Address of the feed.
  std::string feed;
  /// Its fence is that of the learners' group.
  Credit credit;
  /// round * env.blocks + block.
  std::int64_t position = 0;
  TrajectoryRequest request;
  /// The credit's slot: TrajectoryLayout::bytes or more. The item is written in place, call by call.
  std::span<std::byte> memory;
};

/// What a rollout worker does, as one state machine: which simulator holds which block, which item each block is in,
/// when the policy is asked. Its owner has the threads and channels, calls it with what happened and then run(). One
/// thread; no call blocks, but for the policy.
///
/// A block plays its items one after the other. It goes on from item to item (env.reset_mode auto) as long as the
/// next one is of the next round and of the same fence, and its simulator stays; else, and in other reset modes, it
/// begins anew with episode first_episode(round). What a lost simulator had is given up and begun anew elsewhere:
/// the same draws, the same seeds.
///
/// Blocks are assigned to simulators in balance: no simulator holds two blocks more than another, and a
/// block moves only where that rule asks for it. An order of a higher fence gives up everything of the older group.
class RolloutWorker {
 public:
  using Clock = std::chrono::steady_clock;

  /// How it reaches the world.
  struct Effects {
    /// Weights that satisfy the request (WeightReceiver::find); null: not there yet, run() asks again.
    std::function<PublishedWeightsPtr(std::uint64_t fence, const TrajectoryRequest& request)> weights;
    /// Group of learners of the newest whole weights; 0 before the first.
    std::function<std::uint64_t()> newest_fence;
    /// Something to tell the controller: kind (simulator_failed, policy_failed) and sentence.
    std::function<void(const std::string& kind, const std::string& text)> report;
    /// A simulator has had a block for longer than env.step_timeout_s: its instance, and a sentence.
    std::function<void(const std::string& simulator, const std::string& text)> stuck;
  };
  struct Options {
    /// No block is assigned before so many have dialled in, once.
    std::int64_t await_simulators = 0;
  };

  /// Only this worker may ask `simulators`, which must outlive its calls. Fewer slots than blocks are an invariant
  /// violation, as is an environment that no policy takes.
  RolloutWorker(const JobConfig& job, const EnvSpec& spec, std::shared_ptr<const PolicyNet> net, Simulators& simulators,
                Options options, Effects effects);
  ~RolloutWorker();

  /// Layout of the items, a function of the job alone.
  const TrajectoryLayout& layout() const { return layout_; }

  /// A simulator has dialled in and may be given blocks.
  void simulator_joined(const std::string& simulator, Clock::time_point now);
  /// Its exit is confirmed and its slots are free.
  void simulator_gone(const std::string& simulator, Clock::time_point now);
  /// A slot came back, with a transition, an observation, or an error. An answer that is no longer waited for frees its
  /// slot. A block whose requests fail three times in a row gives its item back with the error.
  void answered(const Item& item, Clock::time_point now);
  /// A simulator is not stuck with this request, though it takes long: its time counts anew, and so does the feed's.
  void went_on(const Credit& credit, Clock::time_point now);
  /// Takes an order, or gives it back with an error: of an older fence, or with a slot that is too small.
  void ordered(TrajectoryOrder order, Clock::time_point now);
  /// The feed is gone: what it asked for is given up.
  void feed_gone(const std::string& feed, Clock::time_point now);
  /// Answers what is due with the weights there are, and says when to call again if nothing happens before.
  Clock::time_point run(Clock::time_point now);

  /// Nothing to do: no item is under way, or all wait for weights.
  bool is_idle() const;

  /// Counted since the worker was made.
  struct Stats {
    /// Items delivered; transitions received; transitions given up; calls of PolicyNet::act.
    std::int64_t items = 0, transitions = 0, given_up = 0, policy_calls = 0;
    /// At present: simulators known, blocks that have one.
    std::int64_t simulators = 0, blocks = 0;
    /// In the policy, and writing observations and transitions into items.
    double policy_seconds = 0, record_seconds = 0;
    /// Policy steps of delivered items, and the time from the first call of the policy to the delivery, summed over
    /// items.
    std::int64_t item_steps = 0;
    double item_seconds = 0;
    /// No block could go on for want of weights, and none was being simulated.
    double wait_weights_seconds = 0;
  };
  Stats stats() const;

 private:
  struct Block;
  struct Open;
  // Items
  /// Opens the block's next order, as a continuation where that is allowed.
  void start(std::int64_t index, Block& block, Clock::time_point now);
  /// Assigns a simulator and asks it for a reset; without one, or without a slot, the block waits in unplaced_.
  void begin_anew(std::int64_t index, Block& block, Clock::time_point now);
  void finish(std::int64_t index, Block& block, Clock::time_point now);
  /// Gives an order back to its feed with an error, so that the slot is granted again.
  void refuse(TrajectoryOrder& order, const std::string& why);
  /// Refuses the open order and closes the block.
  void give_up(std::int64_t index, Block& block, const std::string& why);
  /// Counts the transitions of the open item as given up; the item itself stays open.
  void give_up_attempt(Block& block);
  void close(std::int64_t index, Block& block);
  /// A newer group of learners: refuses every order of the older one.
  void supersede(std::uint64_t fence);
  // Simulators
  void ask(std::int64_t index, Block& block, BlockRequest request, Clock::time_point now);
  /// Has the present simulator destroy the block's environments; the slot comes back with its answer.
  void release(std::int64_t index, Block& block, Clock::time_point now);
  /// Releases blocks that no order has named for more than rollout.staleness rounds: another rollout worker has them
  /// now.
  void release_idle(std::int64_t round, Clock::time_point now);
  /// At most once a second.
  static void tell_feed(Open& open, Clock::time_point now);
  /// The block's simulator is gone: the attempt is given up and begun anew.
  void lose(std::int64_t index, Block& block, Clock::time_point now);
  void failed(std::int64_t index, Block& block, const std::string& error, Clock::time_point now);
  /// At most every quarter of env.step_timeout_s: reports requests that are out for longer than it allows. A simulator
  /// serves them in the order of asking: its oldest alone can be stuck, and where another was the oldest at the last
  /// call, its time begins now, a quarter late at most.
  void report_stuck(Clock::time_point now);
  BlockView view_of(const Block& block) const;
  /// Workers share their simulators: block b prefers the one as far down the list as b is among the blocks.
  double place_of(std::int64_t index) const { return static_cast<double>(index) / static_cast<double>(rl_.blocks); }
  // The policy
  /// Writes the newest observation into the item, scaled by its weights. False: the weights are not there yet.
  bool observe(std::int64_t index, Block& block);
  /// One call of the policy per set of weights; actions leave before anything else is computed.
  void answer_blocks(std::span<const std::int64_t> blocks, Clock::time_point now);
  /// final_value of episodes that ended in the last call, and value[T] after the last one.
  void value_ends(std::int64_t index, Block& block);
  const StateScale& scale_of(const PublishedWeightsPtr& weights);

  const JobConfig job_;
  const EnvSpec spec_;
  const RlShape rl_;
  const TrajectoryLayout layout_;
  const TrajectoryWriter writer_;
  PolicyCaller policy_;
  Simulators& simulators_;
  const Options options_;
  const Effects effects_;
  /// Reset mode auto: episodes go on from item to item.
  const bool carries_;
  const std::chrono::nanoseconds timeout_;

  /// Those that orders named.
  std::map<std::int64_t, Block> blocks_;
  /// Of blocks over simulators.
  BalancedAssignment deal_;
  std::int64_t most_simulators_ = 0;
  std::int64_t num_asked_ = 0;
  RequestBatcher batcher_;
  /// Blocks with an item, and no simulator or no slot.
  std::set<std::int64_t> unplaced_;
  std::set<std::int64_t> waiting_weights_;
  /// Newest group that ordered.
  std::uint64_t fence_ = 0;
  std::int64_t serial_ = 0;
  /// Whose scale_ is.
  PublishedWeightsPtr scaled_;
  StateScale scale_;
  std::vector<std::int64_t> due_;
  Clock::time_point next_stuck_check_{};
  /// By simulator, at the last check: the tag of its oldest request.
  std::map<std::string, std::uint64_t> under_way_;
  std::optional<Clock::time_point> starved_since_;
  Stats stats_;
};

}  // namespace troupe::workers

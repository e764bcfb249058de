#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/env_block.h"
#include "env/row_reward.h"

namespace troupe::env {

/// What all rows of a block have in common. Outlives them.
struct BlockRules {
  std::shared_ptr<const EnvFactory> factory;
  /// exec_steps and max_steps are filled in.
  EnvBlock::Options options;
  /// Of each field of one environment's observation, the agents' together.
  std::vector<std::int64_t> field_bytes;
  /// The same of one agent.
  std::vector<std::int64_t> agent_field_bytes;
  /// Of all fields of an environment.
  std::int64_t observation_bytes = 0;

  bool is_same_step() const { return options.reset_mode == ResetMode::same_step; }
};

/// EnvBlock::Counters of some environments: added to by one thread at a time, read by any.
struct RowCounters {
  std::atomic<std::int64_t> env_steps{0}, resets{0}, lost{0}, nanoseconds{0};

  static void add(std::atomic<std::int64_t>& counter, std::int64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

/// The row of one environment of a block, or its rows where it has several agents, and the episode that it is in: the
/// rules of actions, chunks, ends, time limits, rewards and losses, and what is written where. BlockLanes, which
/// holds the environment, calls the environment in between:
///     open, { admit, slot, <step>, accept, end or lose } for each action, { begin, <reset>, has_begun }, close
/// Used by one thread at a time.
class BlockRow {
 public:
  /// `index` is the environment's in its block.
  BlockRow(const BlockRules& rules, std::int64_t index, RowCounters& counters);

  /// A reset or step of the block writes to `out`, which is 0 behind its observations and lives until close().
  void open(const BlockView& out);
  /// Writes the place in the episode.
  void close();

  /// An episode is under way.
  bool is_playing() const { return !ended_; }
  /// What a row does that is not playing when a step comes: shows its last observation again, or says so where it was
  /// lost and could not begin in the step before; the caller then begins an episode.
  void idle();
  /// Ended rows wait for the caller's reset.
  bool waits() const { return !frozen_.empty(); }

  /// Episode `number` is asked of the row, whether or not it can begin.
  void ask(std::int64_t number) { episode_ = number; }
  std::int64_t episode() const { return episode_; }
  std::uint64_t seed_of(std::int64_t number) const;
  /// Episode `number` begins; where its environment writes. `staggers`: the options may shorten it.
  StepSlot begin(std::int64_t number, bool staggers);
  /// The environment began. Errors: data_loss (an observation that is not finite), StepSlot::failure.
  Result<void> has_begun();
  /// It could not: the row is lost.
  void fail_to_begin(const Error& why);

  /// Action k of a chunk as the environment may have it, into `to`, [P, A]. `wanted` is the first agent's; those of the
  /// others follow a chunk apart. The action of a dead agent is not read; 0 takes its place, clipped to the bounds.
  /// Errors: invalid_argument.
  Result<void> admit(const float* wanted, float* to) const;
  /// Where the step with it writes. `last`: of the chunk.
  StepSlot slot(bool last);
  /// The step ended the episode, and wrote no observation: one is to be asked for, into observation_slot().
  bool lacks_observation() const { return !step_.observed && (is_terminated() || step_.truncated); }
  StepSlot observation_slot() {
    return {.observation = observation_,
            .reward = own_.data(),
            .terminated = &step_.terminated,
            .success = &step_.success,
            .info = info(),
            .truncated = &step_.truncated,
            .alive = alive_flags(),
            .failure = &step_.failure};
  }
  /// The step with `action` [P, A] succeeded: its rewards and flags go to place k. True when the episode is over.
  /// Errors: data_loss (a number that is not finite), after which nothing of it is written; StepSlot::failure; those of
  /// the reward model.
  Result<bool> accept(std::span<const float> action, std::int64_t k);
  /// The episode is over and its last observation in place: keeps it and sums the episode up.
  void end();
  /// Action k failed: the row is lost there and has ended.
  void lose(const Error& why, std::int64_t k);

  /// Whether its environment is in the state that the row shows.
  bool has_env() const { return has_env_; }
  /// Its environment was thrown away with others.
  void lose_env() { has_env_ = false; }
  const std::string& why_lost() const { return why_lost_; }

 private:
  /// What the step under way writes.
  struct Step {
    bool terminated = false, truncated = false, success = false, observed = false;
    std::optional<Error> failure = {};
  };
  bool is_terminated() const { return step_.terminated && rules_.options.reset_mode != ResetMode::fixed; }
  /// In the step under way. Nothing is expected behind the death of an agent, whatever the others go on to do.
  bool has_died(std::size_t agent) const { return acted_[agent] != 0 && alive_[agent] == 0; }
  bool is_at_limit() const { return limit_ > 0 && length_ + 1 >= limit_; }
  /// Of all rows of the environment.
  std::span<double> infos() const;
  /// For an environment to write: its own, in the first of its rows.
  std::span<double> info() const { return infos().first(infos().size() / agents_); }
  std::span<std::uint8_t> alive_flags() {
    return agents_ > 1 ? std::span<std::uint8_t>(alive_) : std::span<std::uint8_t>();
  }
  /// This environment's rows of an array of a block [n].
  template <class T>
  std::span<T> own(std::span<T> of_block) const {
    return of_block.subspan(index_ * agents_, agents_);
  }
  template <class T>
  void fill(std::span<T> of_block, T value) const {
    const auto rows = own(of_block);
    std::fill(rows.begin(), rows.end(), value);
  }
  /// Cell of agent `agent` in arrays of a block [n, K].
  std::size_t cell(std::size_t agent, std::int64_t k) const {
    return (index_ * agents_ + agent) * static_cast<std::size_t>(rules_.options.chunk) + static_cast<std::size_t>(k);
  }
  /// Where agent `agent`'s fields begin in the present observation.
  std::span<std::byte* const> observation_of(std::size_t agent);
  /// What each agent is trained on for a step, into trained_. Errors: those of RowReward::of.
  Result<void> reward_agents(std::span<const float> action, bool terminated, bool over);
  /// Counts and logs the loss, and blanks the observation.
  void mark_lost(const Error& why);

  const BlockRules& rules_;
  const EnvSpec& spec_;
  RowCounters& counters_;
  const std::int64_t env_id_;
  const std::size_t index_, agents_;
  const BlockView* out_ = nullptr;  // of the call under way
  bool ended_ = true, has_env_ = true;
  std::int64_t episode_ = 0;
  std::int32_t length_ = 0;
  std::string why_lost_;
  std::int64_t limit_ = 0;         // control steps of this episode; 0: none
  std::vector<RowReward> reward_;  // of each agent; empty: the environment's own
  double return_ = 0;              // of the environment's own rewards, the mean over its agents
  bool success_once_ = false, success_last_ = false;
  Step step_;
  // Of each agent: whether it acts at the next step, whether it did in the step under way, the environment's reward for
  // that and the one that is trained on.
  std::vector<std::uint8_t> alive_, acted_;
  std::vector<double> own_, trained_;
  std::vector<std::byte*> observation_;  // of each field, in the buffer of the present call
  std::vector<std::byte*> of_agent_;     // what observation_of() gives
  std::vector<std::byte> frozen_;        // the last observation, in modes that show it again
};

}  // namespace troupe::env

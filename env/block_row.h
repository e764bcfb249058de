#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  std::vector<std::int64_t> field_bytes;
  /// Of one row, all fields.
  std::int64_t observation_bytes = 0;
};

/// One environment of a block and the episode that it is in: the rules of chunks, resets, time limits and losses. Used
/// by one thread at a time; counters from any.
class BlockRow {
 public:
  /// `index` is the row in its block; `env` may be any fresh environment of the rules' factory.
  BlockRow(const BlockRules& rules, std::int64_t index, std::unique_ptr<Env> env);

  /// As EnvBlock's, for this row of `out`.
  void reset(std::int64_t episode, const BlockView& out);
  void reset_to_seed(std::uint64_t seed, const BlockView& out);
  void step(const float* actions, const BlockView& out);

  EnvBlock::Counters counters() const;
  const std::string& why_lost() const { return why_lost_; }
  Env* env() const { return env_.get(); }

 private:
  /// Puts rewards, flags, counts and info of this row to 0, before a step writes them.
  void clear(const BlockView& out);
  /// Points observation_ at this row's fields of `out`.
  void aim(const BlockView& out);
  void write_place(const BlockView& out);
  void play(const float* actions, const BlockView& out);
  Result<bool> play_one(const float* action, bool last, const BlockView& out, std::size_t cell);
  Result<const float*> admit(const float* action);
  /// reset(): before the episode is begun, and after.
  void prepare_reset(const BlockView& out);
  void finish_reset(const BlockView& out);
  /// Keeps the final observation and sums of the episode that just ended, and begins the next in same_step.
  void end(const BlockView& out);
  /// Throws the environment away, counts and logs the loss, and blanks the observation.
  void mark_lost(const Error& why, const BlockView& out);
  /// Marks the row lost at `cell`.
  void lose(const Error& why, const BlockView& out, std::size_t cell);
  bool have_env(const BlockView& out);
  bool begin(std::int64_t episode, std::uint64_t seed, const BlockView& out);
  /// begin() with the seed that the options give the episode.
  bool begin_numbered(std::int64_t episode, const BlockView& out);
  /// Next episode, with a new environment where the old one was lost. False: lost again.
  bool begin_anew(const BlockView& out);
  void show_frozen();
  void blank_observation();

  const BlockRules& rules_;
  const EnvSpec& spec_;
  const std::int64_t index_, env_id_;
  std::unique_ptr<Env> env_;  // empty when it was lost and not made anew yet
  bool ended_ = true;
  std::int64_t episode_ = 0;
  std::int32_t step_ = 0;
  std::string why_lost_;
  std::int64_t limit_ = 0;           // control steps of this episode; 0: none
  std::optional<RowReward> reward_;  // empty: the environment's own
  double return_ = 0;                // of the environment's own rewards
  bool success_once_ = false, success_last_ = false;
  std::vector<float> action_;            // clipped
  std::vector<std::byte*> observation_;  // of each field, in the buffer of the present step
  std::vector<std::byte> frozen_;        // the last observation, in modes that show it again
  std::atomic<std::int64_t> env_steps_{0}, resets_{0}, lost_{0}, nanoseconds_{0};  // one writer
};

}  // namespace troupe::env

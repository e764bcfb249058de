#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/env_block.h"

namespace troupe {

/// What all rows of a block have in common. Outlives them.
struct BlockRules {
  std::shared_ptr<const EnvFactory> factory;
  EnvBlock::Options options;  ///< exec_steps and max_steps are filled in
  std::vector<std::int64_t> field_bytes;
  std::int64_t observation_bytes = 0;  ///< of one row, all fields
};

/// One environment of a block and the episode that it is in: the rules of chunks, resets, time limits and losses. Used by
/// one thread at a time; counters from any.
class BlockRow {
 public:
  BlockRow(const BlockRules& rules, std::int64_t index, std::unique_ptr<Env> env);

  /// As EnvBlock's, for this row of `out`.
  void reset(std::int64_t episode, const BlockView& out);
  void step(const float* actions, const BlockView& out);

  EnvBlock::Counters counters() const;
  Env* env() const { return env_.get(); }

 private:
  void clear(const BlockView& out);
  void aim(const BlockView& out);
  void write_place(const BlockView& out);
  void play(const float* actions, const BlockView& out);
  Result<bool> play_one(const float* action, bool last, const BlockView& out, std::size_t cell);
  Result<const float*> admit(const float* action);
  void end(const BlockView& out);
  void lose(const Error& why, const BlockView& out, std::size_t cell);
  bool have_env(const BlockView& out);
  bool begin(std::int64_t episode, const BlockView& out);
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
  std::int64_t limit_ = 0;  // control steps of this episode; 0: none
  double return_ = 0;
  bool success_once_ = false, success_last_ = false;
  std::vector<float> action_;            // clipped
  std::vector<std::byte*> observation_;  // of each field, in the buffer of the present step
  std::vector<std::byte> frozen_;        // the last observation, in modes that show it again
  std::atomic<std::int64_t> env_steps_{0}, resets_{0}, lost_{0}, nanoseconds_{0};  // one writer
};

}  // namespace troupe

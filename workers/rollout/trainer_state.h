#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "workers/rollout/moments.h"

namespace troupe {

class CheckpointReader;

/// What a trainer of reinforcement learning keeps in trainer_state.json of a checkpoint beside the shards; the same on every rank.
struct RlTrainerState {
  bool present = false;  ///< false: the job begins
  NormaliserState normaliser;
  std::int64_t optimizer_steps = 0;
  std::int64_t env_steps = 0;
  std::map<std::string, std::int64_t> counters = {};  ///< off-policy: rank 0's running totals, by LedgerRecord's names

  /// JSON; numbers of the normaliser as the bytes of encode(), in hexadecimal, so that they come back bit for bit.
  std::string text() const;
  /// Empty text is the state of a job that begins. Errors: data_loss.
  static Result<RlTrainerState> parse(const std::string& text);
  /// Of a checkpoint. Errors: data_loss, naming the checkpoint.
  static Result<RlTrainerState> read(const CheckpointReader& reader);
};

}  // namespace troupe

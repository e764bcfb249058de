#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "workers/rollout/moments.h"

namespace troupe::workers {

class CheckpointReader;

/// What a trainer of reinforcement learning keeps in trainer_state.json of a checkpoint beside the shards
/// (docs/checkpoints.md#trainer_statejson); the same on every rank.
struct RlTrainerState {
  /// False: the job begins.
  bool present = false;
  NormaliserState normaliser = {};
  /// Updates since the job's start: of minibatches, off-policy of the critics.
  std::int64_t optimizer_steps = 0;
  /// Environment steps collected since the job's start.
  std::int64_t env_steps = 0;
  /// Off-policy: rank 0's running totals, by LedgerRecord's names.
  std::map<std::string, std::int64_t> counters = {};

  /// JSON {"normaliser", "optimizer_steps", "env_steps", "counters"}; the normaliser as the bytes of encode() in
  /// lower-case hexadecimal, so that its numbers come back bit for bit.
  std::string text() const;
  /// Empty text is the state of a job that begins. Errors: data_loss (no JSON, a key missing, digits that are not
  /// hexadecimal).
  static Result<RlTrainerState> parse(const std::string& text);
  /// Of a checkpoint. Errors: data_loss, naming the checkpoint.
  static Result<RlTrainerState> read(const CheckpointReader& reader);
};

}  // namespace troupe::workers

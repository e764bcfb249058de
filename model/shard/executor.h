#pragma once

#include <memory>
#include <vector>

#include "model/shard/engine.h"

namespace troupe {

/// Runs one micro-batch's schedule over an engine's buffers. Collectives are started and waited for as the schedule
/// says; whatever happens, none is left under way when run() returns (but for one that the group itself could not end,
/// see Collective::abort). Used for one run.
class Engine::Executor {
 public:
  Executor(Engine& engine, Collective& collective, UnitTape& tape, ScheduleMode mode, bool first);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  Result<void> run(const Schedule& schedule);

 private:
  Result<void> step(const Op& op);
  void start_gather(const Op& op);
  Result<void> finish_gather(const Op& op);
  void forward(const Op& op);
  void backward(const Op& op);
  void start_reduce(const Op& op);
  Result<void> finish_reduce(const Op& op);
  /// This rank's part of a unit's gradient slot.
  std::span<float> own_part(const Op& op) const;

  Engine& engine_;
  Collective& collective_;
  UnitTape& tape_;
  const ScheduleMode mode_;
  const bool first_;
  std::vector<std::unique_ptr<PendingCollective>> gathers_;  ///< by parameter slot
  std::vector<std::unique_ptr<PendingCollective>> reduces_;  ///< by gradient slot
};

}  // namespace troupe

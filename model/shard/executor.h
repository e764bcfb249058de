#pragma once

#include <memory>
#include <vector>

#include "model/shard/engine.h"
#include "model/shard/manual_backward.h"
#include "model/shard/objective_plan.h"

namespace troupe::model {

/// Runs one micro-batch over an engine's buffers. Collectives are started and waited for as the schedule says; whatever
/// happens, none is left under way when it is destroyed (but for one that the group itself could not end, see
/// Collective::abort). Used for one run.
class Engine::Executor {
 public:
  Executor(Engine& engine, Collective& collective);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Unit by unit on a tape.
  Result<void> run(const Schedule& schedule, UnitTape& tape, ScheduleMode mode);
  /// All units at once: gathers what no slot holds, runs the manual backward, sums the gradients.
  Result<MicroResult> run(const ManualBackward& form, const ObjectivePlan& plan, const Batch& batch, double weight);

 private:
  Result<void> step(const Op& op, UnitTape& tape);
  Result<void> gather_replicated();
  Result<void> reduce_replicated();
  void start_gather(const Op& op);
  Result<void> finish_gather(const Op& op);
  void forward(const Op& op, UnitTape& tape);
  void backward(const Op& op, UnitTape& tape);
  /// Where the gradients of the operation's unit go (Engine::gradient_place).
  int place_of(const Op& op) const;
  void begin_gradients(const Op& op);
  void start_reduce(const Op& op);
  Result<void> finish_reduce(const Op& op);
  /// This rank's part of a unit's gradient slot.
  std::span<float> own_part(const Op& op) const;
  const std::string& name_of(const Op& op) const;
  /// A slot's buffer as far as the unit's layout goes.
  Buffer padded(const at::Tensor& buffer, int unit) const;

  Engine& engine_;
  Collective& collective_;
  std::vector<std::unique_ptr<PendingCollective>> gathers_;  ///< by parameter slot
  std::vector<std::unique_ptr<PendingCollective>> reduces_;  ///< by gradient slot
  bool slots_only_ = false;                                  ///< no gradient is written in place
};

}  // namespace troupe::model

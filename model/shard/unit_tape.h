#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/program/recompute_level.h"
#include "model/program/unit_memory.h"
#include "model/program/unit_program.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Loss and metrics of one micro-batch, as the network returned them (means over its samples).
struct MicroResult {
  double loss = 0;
  std::map<std::string, double> metrics;
};

/// One micro-batch on its way through a network's units: forward and backward by autograd, for any Network
/// (docs/learner-engine.md#recompute). A unit of RecomputeLevel::none is recorded by its forward and keeps its graph.
/// One of another level runs without recording and keeps its input x (the conditioning is shared); its backward runs it
/// again on detached inputs with recording on, differentiates it with autograd, and hands the gradients down. The last
/// unit is always recorded by its forward. Gradients of the conditioning are summed in f32 over the units, last unit
/// first. All levels do the same operations on the same values: same loss, same gradients, bit for bit.
/// A unit that has a program (Network::unit_program) runs by it instead, and keeps what its level says, the last unit
/// everything. Same values up to rounding; parameter gradients are not rounded to the parameters' dtype first, and
/// conditioning that depends on nothing trained gets no gradient.
///
/// Call forward for units 0..n-1 in order, then backward for n-1..0. Parameter views passed to a recorded forward and
/// to backward are leaves that require grad and hold the same values as in forward; where nothing runs again they are
/// the very tensors that forward had. Their memory may hold other units' values in between, if nothing but raw writes
/// put them there: the graph then reads what backward's caller has put back. One thread; CPU gradients run in the
/// calling thread. Programs of a device are enqueued: the batch is taken, and the host goes on. Throws c10::Error when
/// the network does, and for a unit without a program where the memory is a device's.
class UnitTape {
 public:
  /// `weight` scales the loss's gradient. The batch must outlive the tape. `levels`: of the units in order, the last
  /// one for all behind it too; empty: no backward follows. `memory`: of the programs, for one tape at a time,
  /// so that the next micro-batch finds it warm. Null: the tape's own.
  UnitTape(const Network& network, const Batch& batch, double weight, std::span<const RecomputeLevel> levels,
           UnitMemory* memory = nullptr);
  UnitTape(const UnitTape&) = delete;
  UnitTape& operator=(const UnitTape&) = delete;

  void forward(int unit, const ParamView& params);
  /// Writes d(weight * loss)/d(param) into `gradients`, which has the names and shapes of the parameters that are
  /// trained; one that the unit does not use gets zeros.
  void backward(int unit, const ParamView& params, const ParamView& gradients);

  /// What the loss' program left after the last forward, f32 scalars where it ran; none without one.
  const std::vector<at::Tensor>& losses() const { return losses_there_; }
  /// After the last forward, and on a device once its work is done.
  const Outputs& outputs();
  MicroResult result();

 private:
  struct Leaves {
    Carry carry;
    /// those of carry that are differentiated: x, then conditioning
    std::vector<at::Tensor> inputs;
  };
  /// One run of a unit with gradients recorded.
  struct Recorded {
    Leaves leaves;
    /// x, and of the prologue its conditioning; of the last unit the loss
    std::vector<at::Tensor> outputs;
  };
  /// One run of a unit, or of the loss, by its program.
  struct ProgramRun {
    BoundProgram bound;
    /// what it read of the unit before; of the loss the predictions
    std::vector<at::Tensor> inputs;
    Differentiated differentiated;
  };
  int last_unit() const { return static_cast<int>(network_.units().size()) - 1; }
  bool has_backward() const { return !levels_.empty(); }
  RecomputeLevel level_of(int unit) const;
  bool is_differentiated(const at::Tensor& tensor) const;
  Leaves make_leaves(const at::Tensor& x) const;
  Recorded record(int unit, const ParamView& params, const at::Tensor& x);
  /// The unit's outputs, recorded or not as its level says.
  std::vector<at::Tensor> run(int unit, const ParamView& params);
  /// Whether the unit has a program, which then has run.
  bool forward_by_program(int unit, const ParamView& params);
  void backward_by_program(int unit, const ProgramRun& run, const ParamView& params, const ParamView& gradients);
  /// Losses of the predictions, and their gradients.
  void finish_by_program(const std::vector<at::Tensor>& predictions);
  /// Throws where programs run on a device, which runs nothing else.
  void check_host(int unit) const;
  std::vector<at::Tensor> prediction_gradients();
  std::vector<at::Tensor> run_forward(const ProgramRun& run, const ParamView& params, int place);
  void set_prologue(const std::vector<at::Tensor>& outputs);
  void differentiate(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& seeds, const Leaves& leaves,
                     const ParamView& params, const ParamView& gradients);

  const Network& network_;
  const Batch& batch_;
  const double weight_;
  const std::vector<RecomputeLevel> levels_;
  UnitMemory own_memory_;
  UnitMemory& memory_;
  /// the prologue's, detached; every later unit reads it
  std::vector<at::Tensor> conditioning_;
  /// the next unit's input
  at::Tensor x_;
  /// inputs of the units that autograd runs again, until their backward
  std::map<int, at::Tensor> inputs_;
  /// recorded graphs by unit, until its backward
  std::map<int, Recorded> kept_;
  /// runs of programs by unit, until its backward; that of the loss stands behind the last unit
  std::map<int, ProgramRun> program_runs_;
  /// of the conditioning, what gets a gradient; empty: all
  std::vector<bool> differentiated_conditioning_;
  std::optional<Outputs> outputs_;
  /// of programs: predictions and losses on the host, until outputs() asks
  std::vector<at::Tensor> predictions_, losses_;
  std::vector<at::Tensor> losses_there_;
  at::Tensor x_gradient_;
  /// f32 (f64 for f64); undefined until something flows
  std::vector<at::Tensor> conditioning_gradients_;
};

}  // namespace troupe::model

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/program/recompute_level.h"

namespace troupe::model {

/// How a parameter without a checkpoint starts. Draws are keyed by (seed, tensor name, element).
struct Init {
  /// orthogonal: the tensor as a matrix [shape[0], the rest] has orthonormal rows (or columns, if there are more rows),
  /// times scale (Saxe et al. 2013, arXiv:1312.6120). constant: every element is scale.
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform, orthogonal, constant };
  Kind kind = Kind::zeros;
  /// normal: standard deviation; uniform: half width; orthogonal: gain; constant: the value
  double scale = 0;
};

/// One parameter: its name in checkpoints, logical shape and initial value.
struct ParamSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  Init init;
  /// lies right behind the parameter before it in their unit's memory, so that one product can read both
  bool follows = false;
};

/// The smallest group of parameters gathered together. Units with equal `layout_class` have equal layouts up to names.
struct UnitSpec {
  /// unique in the chain: "embed", "blocks.0", ..., "head"
  std::string name;
  /// such as "embed", "block", "head"
  std::string layout_class;
  std::vector<ParamSpec> params;
  /// of `params`; false: no optimizer changes them, and no gradient, master or moment is kept
  bool trainable = true;
  /// units of one group share an optimizer, a clip norm and a cadence (EngineOptions::groups)
  std::string group = "model";
  /// Not empty: a target network, the moving average of that unit, which has the same layout; `trainable` is false.
  /// Engine::average moves it.
  std::string average_of = {};
  /// Small trainable parameters that the unit uses too and that every rank keeps whole: low-rank adapters. Those of all
  /// units form one group (state_units).
  std::vector<ParamSpec> replicated = {};
  /// alpha / rank of the adapters in `replicated`
  double adapter_scale = 1.0;
};

/// A unit whose class and group are its own, called like it.
inline UnitSpec make_group_unit(const std::string& name, std::vector<ParamSpec> params) {
  return {.name = name, .layout_class = name, .params = std::move(params), .group = name};
}

/// The unit that holds the replicated parameters of a chain's units (UnitSpec::replicated).
inline constexpr char kReplicatedUnit[] = "resident";

/// The units that have state: the chain's, and after them, if any has replicated parameters, kReplicatedUnit, which
/// holds those of all in order and is of the group of the first that has any. Engines, snapshots and checkpoints number
/// units in this order.
std::vector<UnitSpec> state_units(const std::vector<UnitSpec>& chain);

/// Named tensors of one unit: views over a slot, valid while the slot is held, and the unit's replicated parameters.
/// Lookup of an unknown name throws c10::Error.
class ParamView {
 public:
  void set(std::string name, at::Tensor tensor, bool follows = false) {
    if (follows) followers_.insert(name);
    tensors_[std::move(name)] = std::move(tensor);
  }
  const at::Tensor& operator[](const std::string& name) const;
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  /// ParamSpec::follows.
  bool follows(const std::string& name) const { return followers_.count(name) != 0; }
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

  /// UnitSpec::adapter_scale, for the code that applies the adapters among these tensors.
  double adapter_scale() const { return adapter_scale_; }
  void set_adapter_scale(double scale) { adapter_scale_ = scale; }

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::set<std::string> followers_;
  double adapter_scale_ = 1.0;
};

/// Named inputs of one micro-batch (not differentiated).
using Batch = std::map<std::string, at::Tensor>;
/// The tensor `key` of the batch; throws c10::Error that names it when it is missing.
const at::Tensor& batch_tensor(const Batch& batch, const std::string& key);

/// What flows between units: the residual stream, and conditioning that every later unit reads (gradients flow into
/// both).
struct Carry {
  at::Tensor x;
  std::vector<at::Tensor> conditioning;
};

/// What the last unit returns.
struct Outputs {
  /// scalar: mean over the micro-batch's samples
  at::Tensor loss;
  /// scalars, means over the micro-batch's samples
  std::map<std::string, at::Tensor> metrics;
  std::map<std::string, at::Tensor> predictions;
};

class ManualBackward;
class UnitProgram;
struct Differentiated;

/// A recorded program (model/program/unit_program.h) and what it runs on besides what other units made.
struct BoundProgram {
  /// null: there is none
  std::shared_ptr<const UnitProgram> program;
  /// what stands before its parameters' names
  std::string prefix;
  /// of the micro-batch, by name
  Batch data;
};

/// A network as an ordered chain of units: a prologue, blocks, an epilogue. Functions over named parameter views: owns
/// no parameters, so that the engine may keep them in shards and slots. Stateless and thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  /// units()[0] is the prologue, units().back() the epilogue, the rest are blocks in order.
  virtual const std::vector<UnitSpec>& units() const = 0;
  /// The residual stream before the first block, and the conditioning. Throws c10::Error, as block and epilogue do, on
  /// a tensor that is missing or has another shape; `params` are this unit's alone.
  virtual Carry prologue(const ParamView& params, const Batch& batch) const = 0;
  /// Residual stream after block `index` (0-based among blocks). Must be bit-equal when run twice on the same inputs.
  virtual at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry,
                           const Batch& batch) const = 0;
  /// Loss, metrics and predictions from the last residual stream.
  virtual Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const = 0;
  /// A unit, forward and backward, as a recorded program for tensors of these shapes. Its results are: of the prologue
  /// x and the conditioning; of a block its result; of the epilogue predictions, from which loss_program makes losses
  /// and outputs() the rest. Null: the unit runs by autograd. `unit`: its place in units().
  virtual BoundProgram unit_program(std::size_t unit, const ParamView& params, const Carry& carry, const Batch& batch,
                                    RecomputeLevel level, const Differentiated& differentiated) const {
    (void)unit, (void)params, (void)carry, (void)batch, (void)level, (void)differentiated;
    return {};
  }
  /// Scalars whose sum is the loss, from what the epilogue's program gave. Null where the batch has no targets.
  virtual BoundProgram loss_program(const std::vector<at::Tensor>& predictions, const Batch& batch) const {
    (void)predictions, (void)batch;
    return {};
  }
  /// What the epilogue returns, from the results of these two programs.
  virtual Outputs outputs(const std::vector<at::Tensor>& predictions, const std::vector<at::Tensor>& losses,
                          const Batch& batch) const {
    (void)predictions, (void)losses, (void)batch;
    return {};
  }
  /// The same function with a manual backward (model/shard/manual_backward.h), owned by this network; null: there is
  /// none.
  virtual const ManualBackward* manual_backward() const { return nullptr; }
};

}  // namespace troupe::model

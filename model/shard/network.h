#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How a parameter without a checkpoint starts (dreamzero-model.md 2.10). Draws are keyed by (seed, tensor name, element).
struct Init {
  /// orthogonal: the tensor as a matrix [shape[0], the rest] has orthonormal rows (or columns, if there are more rows), times
  /// scale (rl.md 6.1; Saxe et al. 2013, arXiv:1312.6120). constant: every element is scale.
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform, orthogonal, constant };
  Kind kind = Kind::zeros;
  double scale = 0;  ///< normal: standard deviation; uniform: half width; orthogonal: gain; constant: the value
};

/// One parameter: its name in checkpoints, logical shape and initial value.
struct ParamSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  Init init;
};

/// The smallest group of parameters gathered together. Units with equal `layout_class` have equal layouts up to names.
struct UnitSpec {
  std::string name;          ///< "embed", "blocks.0", ..., "head"
  std::string layout_class;  ///< "embed", "block", "head"
  std::vector<ParamSpec> params;
  bool trainable = true;  ///< of `params`; false: no optimizer changes them, and no gradient, master or moment is kept
  std::string group =
      "model";  ///< units of one group share an optimizer, a clip norm and a cadence (EngineOptions::groups)
  /// Not empty: a target network, the moving average of that unit, which has the same layout; `trainable` is false. Engine::average moves it.
  std::string average_of = {};
  /// Small trainable parameters that the unit uses too and that every rank keeps whole: low-rank adapters. Those of all
  /// units form one group (state_units).
  std::vector<ParamSpec> resident = {};
  double adapter_scale = 1.0;  ///< alpha / rank of the adapters in `resident`
};

/// The units that have state: the chain's, and after them, if any has resident parameters, the unit "resident" that
/// holds the resident parameters of all in order. Engines, snapshots and checkpoints number units in this order.
std::vector<UnitSpec> state_units(const std::vector<UnitSpec>& chain);

/// Named tensors of one unit: views over a slot, valid while the slot is held, and the unit's resident parameters. Lookup
/// of an unknown name throws c10::Error.
class ParamView {
 public:
  void set(std::string name, at::Tensor tensor) { tensors_[std::move(name)] = std::move(tensor); }
  const at::Tensor& operator[](const std::string& name) const;
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

  /// UnitSpec::adapter_scale, for whoever applies the adapters among these tensors.
  double adapter_scale() const { return adapter_scale_; }
  void set_adapter_scale(double scale) { adapter_scale_ = scale; }

 private:
  std::map<std::string, at::Tensor> tensors_;
  double adapter_scale_ = 1.0;
};

/// Named inputs of one micro-batch (not differentiated).
using Batch = std::map<std::string, at::Tensor>;

/// What flows between units: the residual stream, and conditioning that every later unit reads (gradients flow into both).
struct Carry {
  at::Tensor x;
  std::vector<at::Tensor> conditioning;
};

/// What the last unit returns.
struct Outputs {
  at::Tensor loss;                            ///< scalar: mean over the micro-batch's samples
  std::map<std::string, at::Tensor> metrics;  ///< scalars, means over the micro-batch's samples
  std::map<std::string, at::Tensor> predictions;
};

class ExplicitNetwork;

/// A network as an ordered chain of units: a prologue, blocks, an epilogue. Functions over named parameter views: owns no
/// parameters, so that the engine may keep them in shards and slots. Stateless and thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  /// units()[0] is the prologue, units().back() the epilogue, the rest are blocks in order.
  virtual const std::vector<UnitSpec>& units() const = 0;
  virtual Carry prologue(const ParamView& params, const Batch& batch) const = 0;
  /// Residual stream after block `index` (0-based among blocks). Must be bit-equal when run twice on the same inputs.
  virtual at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry,
                           const Batch& batch) const = 0;
  virtual Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const = 0;
  /// The same function with a hand-written backward (model/shard/explicit_network.h), owned by this network; null: there is none.
  virtual const ExplicitNetwork* explicit_form() const { return nullptr; }
};

}  // namespace troupe

#pragma once

#include <string>
#include <vector>

#include "model/program/graph.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Records the layers of model/wan/layers.h into a graph, over the parameters of one unit. Parameters are named in the
/// graph without the unit's prefix; linears with adapters among them are applied with them (model/wan/lora.h).
class LayerRecorder {
 public:
  /// `params` and `prefix` outlive the recorder; tensors are looked at for their shapes and dtypes alone.
  LayerRecorder(const ParamView& params, const std::string& prefix) : params_(params), prefix_(prefix) {}

  Graph& graph() { return graph_; }
  Graph take() && { return std::move(graph_); }

  ValueId parameter(const std::string& name);
  /// The tensor of data as a value of its shape and dtype.
  ValueId data(const std::string& name, const Batch& data);
  /// Linears of x: one product where their parameters lie together (ParamSpec::follows), whose columns are returned.
  std::vector<ValueId> joined_linears(const std::vector<std::string>& names, ValueId x);
  /// linear, and category_linear with a weight [1, in, out].
  ValueId linear(const std::string& name, ValueId x);
  ValueId category_linear(const std::string& name, ValueId x);
  /// affine_layer_norm, rounded to x's dtype.
  ValueId layer_norm(const std::string& name, ValueId x, double eps);

 private:
  ValueId joined_parameters(const std::vector<std::string>& names, const char* end);
  ValueId optional_parameter(const std::string& name);

  const ParamView& params_;
  const std::string& prefix_;
  Graph graph_;
};

}  // namespace troupe::model

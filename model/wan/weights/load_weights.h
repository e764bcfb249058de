#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/io/weight_source.h"
#include "model/wan/weights/checkpoint_names.h"

namespace troupe::model {

/// One component as it was found.
struct LoadedComponent {
  std::map<std::string, at::Tensor> tensors;  ///< plain names; wanted shapes; the asked dtype
  KeyDifference keys;                         ///< missing tensors are not in `tensors`
};

/// Reads a component's tensors from a source, cast to `dtype`; a tensor that already has it is a view of the mapping
/// (kept alive by the tensor). Adapters lora_A, lora_B beside a linear are merged: W + B A * lora_scale (alpha / rank).
/// A scalar may be stored as [1] and the other way round. Missing and unexpected keys are reported, not errors; the
/// caller decides. Errors: invalid_argument (a wrong shape, a dtype that is not a float, adapters without their pair),
/// data_loss.
Result<LoadedComponent> load_component(const std::shared_ptr<const WeightSource>& source, const ModelConfig& config,
                                       Component component, at::ScalarType dtype, double lora_scale = 1.0);

/// Takes a tensor by its plain name, as it is stored (adapters merged), in the wanted shape. Not yet cast.
using VisitTensor = std::function<void(const std::string& name, at::Tensor tensor)>;

/// Hands the tensors that load_component would return to `visit`, one after another in the order of names, so that
/// memory is bounded by one tensor. Returns what is missing and unexpected. Errors: those of load_component.
Result<KeyDifference> visit_component(const std::shared_ptr<const WeightSource>& source, const ModelConfig& config,
                                      Component component, const VisitTensor& visit, double lora_scale = 1.0);

/// What it would return, by names and shapes alone: no tensor is read.
Result<KeyDifference> compare_component(const WeightSource& source, const ModelConfig& config, Component component);

}  // namespace troupe::model

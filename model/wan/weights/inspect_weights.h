#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/component_keys.h"

namespace troupe::model {

/// One component as a source holds it.
struct ComponentReport {
  Component component = Component::dit;
  ComponentKeys names;
  std::vector<ParamSpec> wanted;
  /// elements of stored weights, adapters not among them
  std::int64_t parameters = 0;
  std::int64_t adapter_parameters = 0;
  /// tensors of each, adapters among them
  std::map<std::string, std::int64_t> dtypes;
  KeyDifference keys;
  /// those of keys.missing that a Wan checkpoint does not have
  std::vector<std::string> new_in_dreamzero;
  /// a save of what LoRA trains: the rest is absent on purpose
  bool adapters_only = false;

  /// True when nothing is unexpected, misshapen, or missing but for a reason that is known.
  bool sound() const {
    const bool complete = adapters_only || keys.missing.size() == new_in_dreamzero.size();
    return complete && keys.unexpected.empty() && keys.misshapen.empty();
  }
};

/// What a source holds.
struct WeightsReport {
  /// components of which the source has tensors
  std::vector<ComponentReport> components;
  /// stored names of no component, such as CLIP's textual.*
  std::vector<std::string> passed_over;
  /// what the tensors were compared with
  ModelConfig config;

  bool sound() const;
};

/// Reads names, shapes and dtypes; no values. `component`: what names without a prefix belong to; nothing: guessed from
/// the names. `model`: what is expected; nothing: sizes are inferred from the shapes, so that only the pattern is
/// checked. Errors: invalid_argument when either cannot be told, two stored names are one tensor, or an adapter lacks
/// its other half.
Result<WeightsReport> inspect_weights(const TensorSource& source, std::optional<Component> component,
                                      const std::optional<ModelConfig>& model);

/// The report as lines of text: per component a summary, then at most `most` names of each kind of difference.
std::string report_text(const WeightsReport& report, std::size_t most = 20);

}  // namespace troupe::model

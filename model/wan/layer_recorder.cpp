#include "model/wan/layer_recorder.h"

#include <algorithm>

#include "model/program/operations.h"
#include "model/wan/lora.h"

namespace troupe::model {

ValueId LayerRecorder::parameter(const std::string& name) {
  const auto& tensor = params_[prefix_ + name];
  return graph_.add_parameter(name, tensor.sizes().vec(), tensor.scalar_type());
}

ValueId LayerRecorder::optional_parameter(const std::string& name) {
  return params_.contains(prefix_ + name) ? parameter(name) : kNoValue;
}

ValueId LayerRecorder::data(const std::string& name, const Batch& data) {
  const auto& tensor = data.at(name);
  return graph_.add_data(name, tensor.sizes().vec(), tensor.scalar_type());
}

ValueId LayerRecorder::linear(const std::string& name, ValueId x) {
  const auto y = record_linear(graph_, x, parameter(name + ".weight"), optional_parameter(name + ".bias"));
  const auto a = optional_parameter(name + std::string(kLoraA));
  if (a == kNoValue) return y;
  const auto b = parameter(name + std::string(kLoraB));
  const auto update = record_linear(graph_, record_linear(graph_, x, a, kNoValue), b, kNoValue);
  return record_add_scaled(graph_, y, update, params_.adapter_scale());
}

ValueId LayerRecorder::joined_parameters(const std::vector<std::string>& names, const char* end) {
  std::vector<std::string> all;
  for (const auto& name : names) all.push_back(name + end);
  const auto& tensor = params_[prefix_ + all.front()];
  return graph_.add_joined_parameters(all, tensor.sizes().vec(), tensor.scalar_type());
}

std::vector<ValueId> LayerRecorder::joined_linears(const std::vector<std::string>& names, ValueId x) {
  const bool joined = std::all_of(names.begin() + 1, names.end(),
                                  [&](const std::string& name) { return params_.follows(prefix_ + name + ".weight"); });
  if (joined) {
    const auto y = record_linear(graph_, x, joined_parameters(names, ".weight"), joined_parameters(names, ".bias"));
    return graph_.split_columns(y, static_cast<std::int64_t>(names.size()));
  }
  std::vector<ValueId> results;
  for (const auto& name : names) results.push_back(linear(name, x));
  return results;
}

ValueId LayerRecorder::category_linear(const std::string& name, ValueId x) {
  return record_linear(graph_, x, parameter(name + ".W"), parameter(name + ".b"), LinearLayout::in_out);
}

ValueId LayerRecorder::layer_norm(const std::string& name, ValueId x, double eps) {
  return record_modulated_norm(graph_, x, parameter(name + ".weight"), parameter(name + ".bias"), {}, eps);
}

}  // namespace troupe::model

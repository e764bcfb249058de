#include "model/wan/layer_recorder.h"

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

ValueId LayerRecorder::category_linear(const std::string& name, ValueId x) {
  return record_linear(graph_, x, parameter(name + ".W"), parameter(name + ".b"), LinearLayout::in_out);
}

ValueId LayerRecorder::layer_norm(const std::string& name, ValueId x, double eps) {
  return record_modulated_norm(graph_, x, parameter(name + ".weight"), parameter(name + ".bias"), {}, eps);
}

}  // namespace troupe::model

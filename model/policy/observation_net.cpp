#include "model/policy/observation_net.h"

#include <ATen/ATen.h>

#include "model/loss/rl_keys.h"

namespace troupe::model {

Result<ObservationNet> ObservationNet::make(const PolicyConfig& policy, Vision vision, const PolicyShape& shape,
                                            MlpShape mlp) {
  TROUPE_ASSIGN(auto features, ObservationFeatures::make(policy, vision, shape, mlp.prefix));
  mlp.inputs = features.width();
  if (policy.memory == PolicyMemory::none)
    return ObservationNet(std::move(features), Mlp(std::move(mlp)), std::nullopt);
  if (mlp.hidden.empty()) {
    return Error{Errc::invalid_argument,
                 "policy.hidden is empty; policy.memory gru reads the last hidden layer: name one width at least"};
  }
  const std::int64_t seen = mlp.hidden.back(), W = policy.memory_width;
  MlpShape head = mlp;
  head.prefix += ".head";
  head.inputs = W;
  head.hidden.clear();
  Memory memory{rl_keys::kMemoryPrefix + mlp.prefix, Gru(mlp.prefix + ".gru", seen, W), Mlp(std::move(head))};
  mlp.hidden.pop_back();
  mlp.outputs = seen;
  mlp.head.reset();
  return ObservationNet(std::move(features), Mlp(std::move(mlp)), std::move(memory));
}

std::vector<ParamSpec> ObservationNet::params() const {
  auto list = features_.params();
  for (auto& param : mlp_.params()) list.push_back(std::move(param));
  if (!memory_) return list;
  for (auto& param : memory_->gru.params()) list.push_back(std::move(param));
  for (auto& param : memory_->head.params()) list.push_back(std::move(param));
  return list;
}

at::Tensor ObservationNet::forward(const ParamView& view, const Batch& observation) const {
  return forward_remembering(view, observation).outputs;
}

ObservationNet::Remembered ObservationNet::forward_remembering(const ParamView& view, const Batch& observation) const {
  at::Tensor seen = mlp_.forward(view, features_.forward(view, observation));
  if (!memory_) return {std::move(seen), {}};
  seen = mlp_.shape().activation == Activation::tanh ? seen.tanh() : seen.relu();
  const auto begins = observation.find(rl_keys::kBegins);
  at::Tensor memory = memory_->gru.forward(view, seen, observation.at(memory_->key),
                                           begins == observation.end() ? at::Tensor() : begins->second);
  return {memory_->head.forward(view, memory), memory};
}

}  // namespace troupe::model

#include "model/policy/observation_net.h"

#include <ATen/ATen.h>

#include "model/loss/rl_keys.h"

namespace troupe::model {

Result<ObservationNet> ObservationNet::make(const PolicyConfig& policy, const PolicyShape& shape, MlpShape mlp) {
  std::vector<ImageCnn> images;
  std::optional<Memory> memory;
  if (policy.memory == PolicyMemory::gru) {
    if (mlp.hidden.empty()) {
      return Error{Errc::invalid_argument,
                   "policy.hidden is empty; policy.memory gru reads the last hidden layer: name one width at least"};
    }
    const std::int64_t inputs = mlp.hidden.back(), W = policy.memory_width;
    MlpShape head = mlp;
    head.prefix += ".head";
    head.inputs = W;
    head.hidden.clear();
    memory.emplace(Memory{rl_keys::kMemoryPrefix + mlp.prefix, Gru(mlp.prefix + ".gru", inputs, W), Mlp(head)});
    mlp.hidden.pop_back();
    mlp.outputs = inputs;
    mlp.head.reset();
  }
  mlp.inputs = shape.state_dim;
  if (policy.kind == PolicyKind::cnn) {
    if (shape.images.empty()) {
      return Error{Errc::invalid_argument,
                   "policy.kind is cnn; the environment has no images: use mlp, or an environment with cameras"};
    }
    for (const auto& image : shape.images) {
      auto cnn = Cnn::make(mlp.prefix + "." + image.name, image, policy.cnn_channels);
      if (!cnn) return cnn.error();
      mlp.inputs += cnn->features();
      images.push_back({rl_keys::kImagePrefix + image.name, std::move(*cnn)});
    }
  } else if (shape.state_dim < 1) {
    return Error{Errc::invalid_argument, "policy.kind is mlp; the environment's observation has no vector: use cnn"};
  }
  return ObservationNet(std::move(images), Mlp(std::move(mlp)), std::move(memory), shape.state_dim);
}

std::vector<ParamSpec> ObservationNet::params() const {
  std::vector<ParamSpec> list;
  for (const auto& image : images_) {
    for (auto& param : image.cnn.params()) list.push_back(std::move(param));
  }
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
  at::Tensor seen = features(view, observation);
  if (!memory_) return {std::move(seen), {}};
  seen = mlp_.shape().activation == Activation::tanh ? seen.tanh() : seen.relu();
  const auto begins = observation.find(rl_keys::kBegins);
  at::Tensor memory = memory_->gru.forward(view, seen, observation.at(memory_->key),
                                           begins == observation.end() ? at::Tensor() : begins->second);
  return {memory_->head.forward(view, memory), memory};
}

at::Tensor ObservationNet::features(const ParamView& view, const Batch& observation) const {
  if (images_.empty()) return mlp_.forward(view, state(observation));
  std::vector<at::Tensor> features;
  for (const auto& image : images_) features.push_back(image.cnn.forward(view, observation.at(image.key)));
  if (columns_ > 0) features.push_back(state(observation).to(features.front().scalar_type()));
  return mlp_.forward(view, at::cat(features, 1));
}

at::Tensor ObservationNet::state(const Batch& observation) const {
  return first_columns(observation.at(rl_keys::kState), columns_);
}

at::Tensor first_columns(const at::Tensor& state, std::int64_t columns) {
  return state.size(1) == columns ? state : state.narrow(1, 0, columns);
}

}  // namespace troupe::model

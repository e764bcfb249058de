#include "model/policy/observation_net.h"

#include <ATen/ATen.h>

#include "model/loss/rl_keys.h"

namespace troupe::model {

Result<ObservationNet> ObservationNet::make(const PolicyConfig& policy, const PolicyShape& shape, MlpShape mlp) {
  std::vector<ImageCnn> images;
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
  return ObservationNet(std::move(images), Mlp(std::move(mlp)), shape.state_dim);
}

std::vector<ParamSpec> ObservationNet::params() const {
  std::vector<ParamSpec> list;
  for (const auto& image : images_) {
    for (auto& param : image.cnn.params()) list.push_back(std::move(param));
  }
  for (auto& param : mlp_.params()) list.push_back(std::move(param));
  return list;
}

at::Tensor ObservationNet::forward(const ParamView& view, const Batch& observation) const {
  if (reads_state_only()) return mlp_.forward(view, state(observation));
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

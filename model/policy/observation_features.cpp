#include "model/policy/observation_features.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/enum_names.h"
#include "model/loss/rl_keys.h"

namespace troupe::model {

Result<ObservationFeatures> ObservationFeatures::make(const PolicyConfig& policy, Vision vision,
                                                      const PolicyShape& shape, const std::string& prefix) {
  if (policy.reads_text() && shape.texts.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.text is {}; the environment tells no text: use none, or an environment with a "
                             "field of reader text (of arm7 env.options.instruction)",
                             enum_name(policy.text))};
  }
  if (vision == Vision::none && !policy.reads_text() && shape.state_dim < 1) {
    return Error{Errc::invalid_argument,
                 policy.actor_vision() != Vision::none
                     ? "policy.critic_sees is false; the environment's observation has no vector for critics: use true"
                     : "policy.vision is none; the environment's observation has no vector to read: use cnn or "
                       "keypoints"};
  }
  if (vision != Vision::none && shape.images.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.vision is {}; the environment has no images: use none, or an environment with "
                             "cameras",
                             enum_name(vision))};
  }
  std::vector<ImageCnn> images;
  std::int64_t width = shape.state_dim;
  if (vision != Vision::none) {
    for (const auto& image : shape.images) {
      TROUPE_ASSIGN(auto cnn, Cnn::make(prefix + "." + image.name, vision, image, policy.cnn_channels));
      width += cnn.features();
      images.push_back({rl_keys::kImagePrefix + image.name, std::move(cnn)});
    }
  }
  std::vector<TextWords> texts;
  if (policy.reads_text()) {
    for (const auto& text : shape.texts) {
      texts.push_back({rl_keys::kTextPrefix + text.name,
                       BagOfWords(prefix + "." + text.name, policy.text_vocab, policy.text_width)});
      width += policy.text_width;
    }
  }
  return ObservationFeatures(std::move(images), std::move(texts), shape.state_dim, width);
}

std::vector<ParamSpec> ObservationFeatures::params() const {
  std::vector<ParamSpec> list;
  for (const auto& image : images_) {
    for (auto& param : image.cnn.params()) list.push_back(std::move(param));
  }
  for (const auto& text : texts_) {
    for (auto& param : text.words.params()) list.push_back(std::move(param));
  }
  return list;
}

at::Tensor ObservationFeatures::forward(const ParamView& view, const Batch& observation) const {
  if (reads_state_only()) return state(observation);
  std::vector<at::Tensor> features;
  for (const auto& image : images_) features.push_back(image.cnn.forward(view, observation.at(image.key)));
  for (const auto& text : texts_) features.push_back(text.words.forward(view, observation.at(text.key)));
  if (columns_ > 0) features.push_back(state(observation).to(features.front().scalar_type()));
  return at::cat(features, 1);
}

at::Tensor ObservationFeatures::state(const Batch& observation) const {
  return first_columns(observation.at(rl_keys::kState), columns_);
}

at::Tensor first_columns(const at::Tensor& state, std::int64_t columns) {
  return state.size(1) == columns ? state : state.narrow(1, 0, columns);
}

}  // namespace troupe::model
